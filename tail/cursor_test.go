package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// bubble runs test with a store of its own in a bubble, whose clock moves only when everybody waits: a
// wake-up that is lost is an hour that has passed.
func bubble(t *testing.T, test func(t *testing.T, f fixture)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, Sync: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		log, run, err := store.Create(t.Context(), buffer.Run{ID: ulid.Make(), Caller: "agent", State: buffer.Idle, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		f := fixture{t, store, log, run.ID}
		f.must(log.Attempt(t.Context(), buffer.Attempt{N: 1, Sent: time.Now()}))
		test(t, f)
		f.must(store.Close())
		broken, err := sqlite.Check(context.WithoutCancel(t.Context()), dir)
		f.must(err)
		for _, line := range broken {
			t.Error("broken:", line)
		}
	})
}

// fixture is one run in a real store.
type fixture struct {
	*testing.T
	store *sqlite.Store
	log   buffer.Log
	id    ulid.ULID
}

func (f fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) append(state buffer.State, chunks ...string) {
	f.Helper()
	var data [][]byte
	for _, c := range chunks {
		data = append(data, []byte(c))
	}
	if err := f.log.Append(f.Context(), data, state, buffer.Closing{}); err != nil {
		f.Error(err) // it may not be the test's goroutine
	}
}

func text(pos int) string { return fmt.Sprintf("data: chunk %d\n\n", pos) }

// wantNext takes one page, which must hold these chunks.
func (f fixture) wantNext(c *Cursor, chunks ...string) {
	f.Helper()
	from := c.Pos()
	page, err := c.Next(f.Context())
	f.must(err)
	if len(page.Chunks) != len(chunks) || c.Pos() != from+int64(len(chunks)) {
		f.Fatalf("a page of %d chunks from %d to %d, want %d", len(page.Chunks), from, c.Pos(), len(chunks))
	}
	for i, chunk := range page.Chunks {
		if string(chunk.Data) != chunks[i] || chunk.Pos != from+int64(i) {
			f.Fatalf("chunk %d is %q, want %q at %d", chunk.Pos, chunk.Data, chunks[i], from+int64(i))
		}
	}
}

// wantEnd is the end of the run, again and again.
func (f fixture) wantEnd(c *Cursor, state buffer.State) {
	f.Helper()
	for _, next := range []func(context.Context) (*buffer.Page, error){c.Next, c.Poll, c.Next} {
		page, err := next(f.Context())
		if err != io.EOF || page.Run.State != state || len(page.Chunks) != 0 {
			f.Fatalf("got %v, run %s, %d chunks; want io.EOF with a run that is %s", err, page.Run.State, len(page.Chunks), state)
		}
	}
}

func TestCursor_WaitsForTheFirstChunk(t *testing.T) {
	bubble(t, func(t *testing.T, f fixture) {
		go func() {
			time.Sleep(time.Minute)
			f.append(buffer.Streaming, "a", "b")
		}()
		c := New(f.store, f.id, 0)
		begun := time.Now()
		f.wantNext(c, "a", "b")
		if passed := time.Since(begun); passed != time.Minute {
			t.Errorf("it came after %s, want a minute", passed)
		}
	})
}

func TestCursor_PollDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, f fixture) {
		c := New(f.store, f.id, 0)
		begun := time.Now()
		page, err := c.Poll(t.Context())
		if err != nil || len(page.Chunks) != 0 || page.Run.State != buffer.Idle || c.Pos() != 0 {
			t.Errorf("an empty run: %d chunks, run %s, %v", len(page.Chunks), page.Run.State, err)
		}
		f.append(buffer.Streaming, "a")
		if page, err = c.Poll(t.Context()); err != nil || len(page.Chunks) != 1 || c.Pos() != 1 {
			t.Errorf("%d chunks, position %d, %v", len(page.Chunks), c.Pos(), err)
		}
		if time.Since(begun) != 0 {
			t.Error("it waited")
		}
	})
}

func TestCursor_EndsWithItsContext(t *testing.T) {
	left := errors.New("the reader has left")
	bubble(t, func(t *testing.T, f fixture) {
		f.append(buffer.Streaming, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := New(f.store, f.id, 1)
		go func() {
			time.Sleep(time.Second)
			cancel(left)
		}()
		page, err := c.Next(ctx)
		if !errors.Is(err, left) || page.Run.ID != f.id || page.Run.State != buffer.Streaming || c.Pos() != 1 {
			t.Errorf("%v, run %s at %d; want the cause, and the run", err, page.Run.State, c.Pos())
		}
		f.append(buffer.Streaming, "b") // the cursor is as good as before
		f.wantNext(c, "b")
	})
}

func TestCursor_EndsWithItsRun(t *testing.T) {
	for _, state := range []buffer.State{buffer.Completed, buffer.Interrupted, buffer.Cancelled} {
		t.Run(string(state), func(t *testing.T) {
			bubble(t, func(t *testing.T, f fixture) {
				f.append(buffer.Streaming, "a")
				c := New(f.store, f.id, 0)
				f.wantNext(c, "a")
				go func() {
					time.Sleep(time.Second)
					f.append(state, "b")
				}()
				f.wantNext(c, "b")
				f.wantEnd(c, state)
			})
		})
	}
	t.Run("without a chunk", func(t *testing.T) {
		bubble(t, func(t *testing.T, f fixture) {
			f.append(buffer.Failed)
			f.wantEnd(New(f.store, f.id, 0), buffer.Failed)
		})
	})
}

func TestCursor_TellsTheStoresErrors(t *testing.T) {
	bubble(t, func(t *testing.T, f fixture) {
		f.append(buffer.Streaming, "a")
		if page, err := New(f.store, f.id, 2).Next(t.Context()); !errors.Is(err, buffer.ErrAhead) || page.Run.Head != 1 {
			t.Errorf("beyond the head: %v with head %d", err, page.Run.Head)
		}
		if _, err := New(f.store, ulid.Make(), 0).Next(t.Context()); !errors.Is(err, buffer.ErrNotFound) {
			t.Errorf("no such run: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			if err := f.store.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := New(f.store, f.id, 1).Next(t.Context()); !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("a store that closes under a wait: %v", err)
		}
	})
}

// recycler gives pages of one chunk, and counts which of them have been given back.
type recycler struct {
	head int64
	back []int64
}

func (l *recycler) Read(_ context.Context, _ ulid.ULID, from int64, _ int) (buffer.Page, error) {
	page := buffer.Page{Run: buffer.Run{State: buffer.Completed, Head: l.head}}
	if from < l.head {
		page.Chunks = []buffer.Chunk{{Pos: from, End: from + 1, Data: []byte("x")}}
		page.Recycle = func() { l.back = append(l.back, from) }
	}
	return page, nil
}

func (l *recycler) Watch(ulid.ULID) (<-chan struct{}, func()) { return nil, func() {} }

func TestCursor_GivesEachPageBackOnce(t *testing.T) {
	log := &recycler{head: 3}
	c := New(log, ulid.Make(), 0)
	for i := range 3 {
		if page, err := c.Next(t.Context()); err != nil || len(page.Chunks) != 1 {
			t.Fatalf("page %d: %d chunks, %v", i, len(page.Chunks), err)
		}
		if len(log.back) != i {
			t.Errorf("with page %d in hand, %v were given back", i, log.back)
		}
	}
	for range 2 {
		if _, err := c.Next(t.Context()); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
	}
	if !slices.Equal(log.back, []int64{0, 1, 2}) {
		t.Errorf("pages %v were given back, want each once", log.back)
	}
}

func TestCursor_ATakenPageIsNotGivenBack(t *testing.T) {
	log := &recycler{head: 3}
	c := New(log, ulid.Make(), 0)
	for range 3 {
		if _, err := c.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if page := c.Take(); len(page.Chunks) != 1 || page.Recycle == nil || page.Run.Head != 3 {
			t.Errorf("took %+v", page)
		}
	}
	if _, err := c.Poll(t.Context()); err != io.EOF {
		t.Fatalf("at the end: %v", err)
	}
	if len(log.back) > 0 {
		t.Errorf("pages %v were given back, which were taken", log.back)
	}
	if page := c.Take(); page.Run.State != buffer.Completed {
		t.Errorf("at the end it gives %+v", page)
	}
}
