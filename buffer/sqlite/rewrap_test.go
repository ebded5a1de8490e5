package sqlite

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// rotated is a log with kept runs of two keys before, one in the clear, and one that was swept.
func rotated(t *testing.T, runs int) (dir string, ids []ulid.ULID) {
	t.Helper()
	dir = t.TempDir()
	for _, keys := range [][]Key{nil, {key("first")}, {key("second"), key("first")}} {
		s := openStore(t, Config{Dir: dir, lazy: true, Keys: keys, Window: -1})
		n := runs
		if keys == nil {
			n = 1
		}
		for range n {
			ids = append(ids, told(t, s, buffer.Interrupted).ID)
		}
		gone := told(t, s, buffer.Interrupted)
		_, err := s.Release(t.Context(), gone.ID)
		must(t, err)
		must(t, errors.Join((&sweep{s: s, ctx: t.Context()}).drop(), s.Close()))
	}
	return dir, ids
}

func wantRetiring(t *testing.T, s *Store, want int64) {
	t.Helper()
	if got, err := s.Retiring(t.Context()); got != want || err != nil {
		t.Errorf("%d runs need keys of before, %v; want %d", got, err, want)
	}
}

// Each look of the sweep, each of a scrape, costs what is left to do, however many runs are kept.
func TestRewrap_GoesByTheIndex(t *testing.T) {
	s := openHidden(t, t.TempDir(), key("first"))
	defer s.Close() // it was only read
	for query, args := range map[string][]any{selectNextKey: {""}, countWrappedBy: {"k"}, selectWrappedBy: {"k", 0, 1}} {
		if plan := explain(t, s, query, args); !strings.Contains(plan, "ciphers_key (key") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s goes by\n%s", query, plan)
		}
	}
}

func sweepNow(t *testing.T, s *Store) buffer.Swept {
	t.Helper()
	swept, err := s.Sweep(t.Context(), time.Unix(0, 0), nil)
	must(t, err)
	return swept
}

// The keys of before can go as soon as the first one has wrapped the data keys of all kept runs.
func TestRewrap_KeysOfBeforeCanGo(t *testing.T) {
	const runs = sweepRuns + 3 // of each key: more than one step
	dir, ids := rotated(t, runs)
	s := openHidden(t, dir, key("third"), key("second"), key("first"))
	wantRetiring(t, s, 2*runs)
	fresh := told(t, s, buffer.Interrupted)
	if swept := sweepNow(t, s); swept != (buffer.Swept{Rewrapped: 2 * runs}) {
		t.Errorf("swept %+v", swept)
	}
	wantRetiring(t, s, 0)
	if swept := sweepNow(t, s); swept != (buffer.Swept{}) {
		t.Errorf("swept again %+v", swept)
	}
	wantTold(t, s, ids[1])
	must(t, s.Close())

	s = openHidden(t, dir, key("third"))
	for _, id := range append(ids, fresh.ID) {
		wantTold(t, s, id)
	}
	if r, err := s.Get(t.Context(), ids[1]); err != nil || r.EncryptedWith != "third" {
		t.Errorf("it says that it is encrypted with %q, %v", r.EncryptedWith, err)
	}
	wantRetiring(t, s, 0)
	must(t, s.Close())
	wantSound(t, dir, key("third"))
	about, err := Look(t.Context(), dir, key("first"))
	must(t, err)
	if len(about.Keys) != 1 || about.Keys["third"] != 2*runs+1 || about.Lacking["third"] != 2*runs+1 {
		t.Errorf("it needs %v, of which a former key lacks %v", about.Keys, about.Lacking)
	}
}

// Whoever ends in the middle leaves each run readable with the keys that there are, and the next one goes on.
func TestRewrap_EndsInTheMiddle(t *testing.T) {
	const runs = 5
	keys := []Key{key("third"), key("second"), key("first")}
	for name, test := range map[string]struct {
		at   Point
		n    int32 // the first time it happens that fails, and all others after it
		left int   // runs for the next one
	}{
		"before the first commit": {AtCommit, 1, 2 * runs},
		"before the second":       {AtCommit, 2, runs},
		"among the first's rows":  {AtWrite, 3, 2 * runs},
		"after a commit":          {AtCommitted, 1, 0}, // it was kept, and that is found out
	} {
		t.Run(name, func(t *testing.T) {
			dir, ids := rotated(t, runs)
			var armed atomic.Bool
			var seen atomic.Int32
			s := openStore(t, Config{Dir: dir, lazy: true, Window: -1, Keys: keys, Fault: func(p Point) error {
				if p == test.at && armed.Load() && seen.Add(1) >= test.n {
					return errDisk
				}
				return nil
			}})
			armed.Store(true)
			w := &sweep{s: s, ctx: t.Context()}
			if err := w.rewrap(); (err == nil) != (test.left == 0) {
				t.Errorf("got error %v", err)
			}
			armed.Store(false)
			left := t.TempDir() // as a kill leaves it
			for _, name := range []string{fileName, fileName + "-wal"} {
				copyFile(t, filepath.Join(dir, name), filepath.Join(left, name))
			}
			must(t, s.Close())

			s = openHidden(t, left, keys...)
			for _, id := range ids {
				wantTold(t, s, id)
			}
			if swept := sweepNow(t, s); swept != (buffer.Swept{Rewrapped: test.left}) {
				t.Errorf("swept %+v, want %d", swept, test.left)
			}
			must(t, s.Close())
			s = openHidden(t, left, key("third"))
			for _, id := range ids {
				wantTold(t, s, id)
			}
			must(t, s.Close())
			wantSound(t, left, key("third"))
		})
	}
}

// While another process has the log open, which may not have the new key, it needs no other than before.
func TestRewrap_NotUnderAnother(t *testing.T) {
	dir := t.TempDir()
	old := openHidden(t, dir, key("first"))
	r := told(t, old, buffer.Interrupted)
	fresh := openStore(t, Config{Dir: dir, lazy: true, Join: true, Window: -1, Keys: []Key{key("second"), key("first")}})
	if swept := sweepNow(t, fresh); swept.Rewrapped != 0 {
		t.Errorf("swept %+v", swept)
	}
	wantTold(t, old, r.ID)
	must(t, old.Close())
	if swept := sweepNow(t, fresh); swept.Rewrapped != 1 {
		t.Errorf("swept %+v", swept)
	}
	wantTold(t, fresh, r.ID)
	must(t, fresh.Close())
	wantSound(t, dir, key("second"))
}

// A data key that is damaged does not hold the key that has wrapped it, and stays damaged.
func TestRewrap_DamagedDataKey(t *testing.T) {
	dir, ids := rotated(t, 2)
	execute(t, dir, `UPDATE ciphers SET wrapped = zeroblob(60) WHERE run = (SELECT run FROM runs WHERE id = '`+ids[1].String()+`')`)
	var before, after []byte
	s := openHidden(t, dir, key("third"), key("second"), key("first"))
	const wrapped = `SELECT wrapped FROM ciphers c JOIN runs r ON r.run = c.run WHERE r.id = ?`
	must(t, s.read.QueryRowContext(t.Context(), wrapped, ids[1].String()).Scan(&before))
	if swept := sweepNow(t, s); swept.Rewrapped != 4 {
		t.Errorf("swept %+v", swept)
	}
	must(t, s.read.QueryRowContext(t.Context(), wrapped, ids[1].String()).Scan(&after))
	if !bytes.Equal(before, after) {
		t.Error("it was written over")
	}
	must(t, s.Close())
	s = openHidden(t, dir, key("third"))
	if _, err := s.Get(t.Context(), ids[1]); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got error %v", err)
	}
	wantTold(t, s, ids[2])
	must(t, s.Close())
}
