package sqlite

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// two are an old process of a folder and a new one, in one.
func two(t *testing.T, window int64, keys ...Key) (dir string, old, fresh *Store) {
	t.Helper()
	dir = t.TempDir()
	t.Cleanup(func() { wantSound(t, dir, keys...) })
	open := func(join bool) *Store {
		s := openStore(t, Config{Dir: dir, lazy: true, Window: window, Join: join, Keys: keys})
		t.Cleanup(func() { must(t, s.Close()) })
		_, err := s.Recover(t.Context())
		must(t, err)
		return s
	}
	old = open(false)
	return dir, old, open(true)
}

// await reads from position from on until want says that it has come. It waits for bells alone.
func await(t *testing.T, s *Store, id ulid.ULID, from int64, want func(buffer.Page) bool) buffer.Page {
	t.Helper()
	patience := time.After(30 * time.Second)
	for {
		changed, stop := s.Watch(id)
		page, err := s.Read(t.Context(), id, from, 1<<20)
		must(t, err)
		if want(page) {
			stop()
			return page
		}
		select {
		case <-changed:
		case <-patience:
			t.Fatalf("it does not come: %d chunks, %s", len(page.Chunks), page.Run.State)
		}
		stop()
	}
}

func has(n int) func(buffer.Page) bool {
	return func(p buffer.Page) bool { return len(p.Chunks) == n }
}

func in(state buffer.State) func(buffer.Page) bool {
	return func(p buffer.Page) bool { return p.Run.State == state }
}

// A reader in one process follows a run of another chunk by chunk, through segments, to its end.
func TestShared_ATailFollowsARunOfTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		window int64
		keys   []Key
	}{
		"default window": {0, nil}, "no window": {-1, nil},
		"encrypted": {0, []Key{key("one")}}, "encrypted, no window": {-1, []Key{key("one")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, old, fresh := two(t, c.window, c.keys...)
			log, r := started(t, old)
			var from int64
			for n := range 60 {
				data := fmt.Appendf(nil, "%d:%s", n, make([]byte, 4000)) // so that there are segments
				must(t, log.Append(t.Context(), [][]byte{data}, buffer.Streaming, buffer.Closing{Status: 200}))
				page := await(t, fresh, r.ID, from, has(1))
				if c := page.Chunks[0]; string(c.Data) != string(data) || c.Pos != from || page.Run.Head != from+1 || page.Run.Status != 200 {
					t.Fatalf("chunk %d at %d, head %d, status %d", n, c.Pos, page.Run.Head, page.Run.Status)
				}
				from++
				if got, err := fresh.Get(t.Context(), r.ID); err != nil || got.Head != from {
					t.Fatalf("head %d, %v; want %d", got.Head, err, from)
				}
			}
			must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
			await(t, fresh, r.ID, from, in(buffer.Completed))
		})
	}
}

// Who ends a run of another process is heard by its owner, who may have nothing to append.
func TestShared_AnEndReachesTheOwner(t *testing.T) {
	_, old, fresh := two(t, 0)
	log, r := started(t, old)
	must(t, log.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Streaming, buffer.Closing{}))
	ended, err := fresh.Seal(t.Context(), r.ID, buffer.Cancelled, buffer.CancelAsked)
	must(t, err)
	if ended.State != buffer.Cancelled || ended.Head != 1 {
		t.Fatalf("it is %s at %d", ended.State, ended.Head)
	}
	if page, err := fresh.Read(t.Context(), r.ID, 1, 1); err != nil || page.Run.State != buffer.Cancelled {
		t.Fatalf("who ended it reads %s, %v", page.Run.State, err)
	}
	if err := log.Append(t.Context(), [][]byte{[]byte("1")}, buffer.Streaming, buffer.Closing{}); !errors.Is(err, buffer.ErrSealed) {
		t.Fatalf("its owner's append: %v", err)
	}
	log, r = started(t, old)
	_, err = fresh.Seal(t.Context(), r.ID, buffer.Cancelled, buffer.CancelAsked)
	must(t, err)
	<-log.Sealed()
	await(t, old, r.ID, 0, in(buffer.Failed))
}

// Of all claims of one key, in whichever process, one wins.
func TestShared_AKeyIsClaimedOnce(t *testing.T) {
	_, old, fresh := two(t, 0)
	for n := range 50 {
		key := fmt.Sprint("k", n)
		won := make(chan ulid.ULID, 2)
		for _, s := range []*Store{old, fresh} {
			go func() {
				_, r, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), Caller: "c", Key: key, State: buffer.Idle})
				if err != nil && !errors.Is(err, buffer.ErrExists) {
					t.Error(err)
				}
				won <- r.ID
			}()
		}
		if a, b := <-won, <-won; a != b {
			t.Fatalf("%s has two runs", key)
		}
	}
}

// What one releases, the other does not give out from memory.
func TestShared_AReleaseHoldsForBoth(t *testing.T) {
	_, old, fresh := two(t, 0)
	log, r := started(t, old)
	must(t, log.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Completed, buffer.Closing{}))
	_, err := fresh.Release(t.Context(), r.ID)
	must(t, err)
	await(t, old, r.ID, 0, in(buffer.Released))
	swept, err := old.Sweep(t.Context(), time.Now().Add(48*time.Hour), nil)
	must(t, err)
	if swept.Chunks != 0 || swept.Forgotten != 0 {
		t.Fatalf("deleted under the other's readers: %+v", swept)
	}
}

// An owner that dies leaves its runs to the others, who seal them and no others.
func TestShared_TheDeadAreRecoveredAndTheLivingAreNot(t *testing.T) {
	dir, old, fresh := two(t, 0)
	log, lost := started(t, old)
	must(t, log.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Streaming, buffer.Closing{}))
	mine, kept := started(t, fresh)
	third := openStore(t, Config{Dir: dir, lazy: true, Join: true})
	t.Cleanup(func() { must(t, third.Close()) })
	if n, err := third.Recover(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d runs of the living were recovered, %v", n, err)
	}
	await(t, fresh, lost.ID, 0, has(1))
	abandon(t, old)
	page := await(t, fresh, lost.ID, 1, in(buffer.Interrupted))
	if page.Run.Reason != buffer.OwnerLost {
		t.Fatalf("the reason is %s", page.Run.Reason)
	}
	if err := log.Append(t.Context(), [][]byte{[]byte("1")}, buffer.Streaming, buffer.Closing{}); !errors.Is(err, buffer.ErrSealed) {
		t.Fatalf("the dead append: %v", err)
	}
	must(t, mine.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Completed, buffer.Closing{}))
	await(t, third, kept.ID, 1, in(buffer.Completed))
}

// A folder is shared with who asks for it alone.
func TestShared_WhoDoesNotJoinIsRefused(t *testing.T) {
	dir, old, fresh := two(t, 0)
	for _, s := range []*Store{old, fresh} {
		if _, err := Open(t.Context(), Config{Dir: dir, lazy: true}); !errors.Is(err, ErrInUse) {
			t.Fatalf("got error %v", err)
		}
		if _, err := Compact(t.Context(), dir, nil); !errors.Is(err, ErrInUse) {
			t.Fatalf("compact: %v", err)
		}
		must(t, s.Close())
	}
	must(t, openStore(t, Config{Dir: dir, lazy: true}).Close())
}

// Each process writes on where the other was: positions stay dense, and what one deletes is nothing that
// the other needs.
func TestShared_BothWriteAtOnce(t *testing.T) {
	_, old, fresh := two(t, 4096)
	type written struct {
		log buffer.Log
		run buffer.Run
	}
	var all []written
	for n := range 8 {
		log, r := started(t, []*Store{old, fresh}[n%2])
		all = append(all, written{log, r})
	}
	const commits = 150
	failed := make(chan error, len(all))
	for _, w := range all {
		go func() {
			var err error
			for n := range commits {
				err = errors.Join(err, w.log.Append(t.Context(), [][]byte{fmt.Appendf(nil, "%d%s", n, make([]byte, 700))}, buffer.Streaming, buffer.Closing{}))
			}
			failed <- err
		}()
	}
	for range all {
		must(t, <-failed)
	}
	for _, w := range all {
		for _, s := range []*Store{old, fresh} {
			for from := range int64(commits) {
				page, err := s.Read(t.Context(), w.run.ID, from, 1)
				if err != nil || len(page.Chunks) != 1 || page.Chunks[0].Pos != from {
					page = await(t, s, w.run.ID, from, has(1))
				}
				if data := page.Chunks[0].Data; string(data[:len(data)-700]) != fmt.Sprint(from) {
					t.Fatalf("position %d holds %q", from, data[:5])
				}
			}
		}
		must(t, w.log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
	}
}
