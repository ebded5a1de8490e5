package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/spool-dev/spool/buffer"
)

// A process that cannot read a run of another, whose keys are newer, loses nothing of it: it refuses to read it,
// counts it, and ends it with all that has arrived, as its row has it.
func TestEncryption_WhoHasNotTheKeyLosesNothing(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, old, fresh *Store, id ulid.ULID){
		"cancels it": func(t *testing.T, old, fresh *Store, id ulid.ULID) {
			r, err := old.Seal(t.Context(), id, buffer.Cancelled, buffer.CancelAsked)
			if err != nil || r.State != buffer.Cancelled || r.Head != 5 || r.Bytes != 10 {
				t.Errorf("sealed is %s at %d, byte %d, %v", r.State, r.Head, r.Bytes, err)
			}
			must(t, fresh.Close())
		},
		"recovers it": func(t *testing.T, old, fresh *Store, id ulid.ULID) {
			abandon(t, fresh)
			await(t, old, id, 5, in(buffer.Interrupted))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			core, logged := observer.New(zap.WarnLevel)
			old := openStore(t, Config{Dir: dir, lazy: true, Keys: []Key{key("a")}, Log: zap.New(core)})
			_, err := old.Recover(t.Context())
			must(t, err)
			fresh := openStore(t, Config{Dir: dir, lazy: true, Join: true, Keys: []Key{key("b"), key("a")}})
			_, err = fresh.Recover(t.Context())
			must(t, err)
			log, r := started(t, fresh)
			for i := range 5 {
				must(t, log.Append(t.Context(), [][]byte{fmt.Appendf(nil, "%d\n", i)}, buffer.Streaming, buffer.Closing{}))
				if page, err := old.Read(t.Context(), r.ID, 0, 1<<20); !errors.Is(err, ErrKey) || len(page.Chunks) > 0 {
					t.Fatalf("it reads %d chunks, %v", len(page.Chunks), err)
				}
				if page, err := old.Read(t.Context(), r.ID, int64(i)+1, 1<<20); err != nil || page.Run.Head != int64(i)+1 {
					t.Fatalf("at the head it reads %d, %v", page.Run.Head, err)
				}
			}
			for _, read := range []func() (buffer.Run, error){
				func() (buffer.Run, error) { return old.Get(t.Context(), r.ID) },
				func() (first buffer.Run, err error) {
					for first, err = range old.List(t.Context(), buffer.Filter{}) {
						break
					}
					return first, err
				},
			} {
				if got, err := read(); err != nil || got.Head != 5 || got.Bytes != 10 || got.EncryptedWith != "b" {
					t.Errorf("it is told of %d chunks, %d bytes, key %q, %v", got.Head, got.Bytes, got.EncryptedWith, err)
				}
			}
			end(t, old, fresh, r.ID)
			must(t, old.Close())
			if n := logged.FilterField(zap.String("run", r.ID.String())).Len(); n > 2 {
				t.Errorf("%d lines are logged of one run", n)
			}

			next := openHidden(t, dir, key("b"), key("a"))
			page, err := next.Read(t.Context(), r.ID, 0, 1<<20)
			must(t, err)
			if len(page.Chunks) != 5 || string(page.Chunks[4].Data) != "4\n" {
				t.Errorf("%d chunks are left", len(page.Chunks))
			}
			must(t, next.Close())
			wantSound(t, dir, key("b"), key("a"))
		})
	}
}
