package sqlite

import (
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Whatever comes, the window holds no more than its limit, and forgets ended runs as a whole.
func TestWindow_IsBounded(t *testing.T) {
	const limit = 64 << 10
	w := newWindow(limit)
	live := &draft{run: buffer.Run{ID: ulid.Make(), State: buffer.Idle}, fresh: true}
	w.publish(live)
	for i := range 1000 {
		grow(w, live.run.ID, buffer.Streaming, i%700)
		other := &draft{run: buffer.Run{ID: ulid.Make(), State: buffer.Idle}, fresh: true}
		w.publish(other)
		grow(w, other.run.ID, buffer.Completed, i%300)
		if w.held > limit {
			t.Fatalf("window holds %d bytes, limit %d", w.held, limit)
		}
	}
	if n := len(w.runs); n > limit/runCost+1 {
		t.Fatalf("%d runs are in memory", n)
	}
	v := w.runs[live.run.ID].view.Load()
	if v.first == 0 || v.first+int64(len(v.chunks)) != v.run.Head {
		t.Fatalf("a live run has chunks %d to %d, its head is %d", v.first, v.first+int64(len(v.chunks)), v.run.Head)
	}
	if cap(v.chunks) > 4*len(v.chunks)+16 {
		t.Fatalf("%d chunks keep an array of %d alive", len(v.chunks), cap(v.chunks))
	}
	if page, ok := w.read(live.run.ID, v.run.Head, 1); !ok || len(page.Chunks) != 0 {
		t.Fatal("the head of a live run is not in memory")
	}
	if _, ok := w.read(live.run.ID, v.first-1, 1); ok {
		t.Fatal("read what was evicted")
	}
}

// A window that never gets full keeps nothing of runs that were swept, not even behind one that lives on.
func TestWindow_GivesUpWhatIsForgotten(t *testing.T) {
	w := newWindow(1 << 20)
	live := &draft{run: buffer.Run{ID: ulid.Make(), State: buffer.Idle}, fresh: true}
	w.publish(live)
	grow(w, live.run.ID, buffer.Streaming, 10)
	for range 1000 {
		d := &draft{run: buffer.Run{ID: ulid.Make(), State: buffer.Idle}, fresh: true}
		w.publish(d)
		grow(w, d.run.ID, buffer.Streaming, 10)
		grow(w, d.run.ID, buffer.Completed, 10)
		r := w.runs[d.run.ID]
		w.forget(d.run.ID)
		w.evict()
		if v := r.view.Load(); v.chunks != nil {
			t.Fatalf("%d chunks are kept of a run that was forgotten", len(v.chunks))
		}
	}
	if n := len(w.order); n > 10 {
		t.Errorf("%d shares are kept of one run", n)
	}
	if w.held != w.runs[live.run.ID].held {
		t.Errorf("the window holds %d bytes, its only run %d", w.held, w.runs[live.run.ID].held)
	}
}

// What was handed out stays as it was while the run grows and is evicted.
func TestWindow_PagesDoNotChange(t *testing.T) {
	w := newWindow(4 << 10)
	d := &draft{run: buffer.Run{ID: ulid.Make(), State: buffer.Idle}, fresh: true}
	w.publish(d)
	grow(w, d.run.ID, buffer.Streaming, 10)
	page, ok := w.read(d.run.ID, 0, 1<<20)
	if !ok {
		t.Fatal("not in memory")
	}
	_ = append(page.Chunks, buffer.Chunk{Pos: 99}) // what a reader does with its slice is its own
	for range 200 {
		grow(w, d.run.ID, buffer.Streaming, 100)
	}
	if len(page.Chunks) != 1 || page.Run.Head != 1 || page.Chunks[0].Pos != 0 {
		t.Fatalf("page became %+v", page)
	}
}

// grow publishes a commit of one chunk.
func grow(w *window, id ulid.ULID, to buffer.State, size int) {
	d := &draft{run: *w.runs[id].view.Load().run}
	d.run.Bytes += int64(size)
	d.added = []buffer.Chunk{{Pos: d.run.Head, End: d.run.Bytes, Data: make([]byte, size)}}
	d.run.Head++
	d.run.State, d.stored = to, d.run.Head // as if each commit went into a segment
	w.publish(d)
	w.evict()
}
