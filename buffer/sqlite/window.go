package sqlite

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// What is reckoned for a chunk besides its bytes, and for an ended run besides its chunks.
const (
	chunkCost = 64 // a Chunk is 40 bytes, and there is room for half as many again
	runCost   = 2048
)

// window keeps every live run's present row and the most recent chunks of all runs in memory. What
// it hands out is never changed afterwards, so readers share it without a copy.
type window struct {
	mu   sync.RWMutex
	runs map[ulid.ULID]*recent // changed by the writer alone, which may read it without the lock

	// The rest is the writer's own.
	limit int64
	held  int64
	order []share // oldest first
	stale int     // of them, those of runs that were forgotten
}

// recent is one run in the window.
type recent struct {
	row   int64
	owner int64
	key   *dataKey
	view  atomic.Pointer[view]
	// sealed is closed when this process can append no more: another has ended the run, or it was
	// forgotten.
	sealed chan struct{}

	// The writer's own.
	held   int64
	shares int   // of it in the window's order
	dead   int   // chunks that were evicted, but whose array is still in use
	stored int64 // the head of what is in segments; what comes after it is in memory
	age    int64 // of the file, when the owner was last looked up
	gone   bool

	waiting int64 // bytes reckoned for its arrivals that no segment holds yet
}

// view is what one commit left: chunks are those of run from position first to the head. Its bell is
// closed, by whoever has put another in its place, when there is another.
type view struct {
	run    *buffer.Run
	first  int64
	chunks []buffer.Chunk
	bell   chan struct{}
	gone   bool // the last one: its bell has rung, and it holds no chunks any more
}

// replace puts what change makes of the view in its place, and returns the former one. The writer does
// so with what it has committed, and anybody with a new bell.
func (r *recent) replace(change func(v view) *view) *view {
	for {
		old := r.view.Load()
		if r.view.CompareAndSwap(old, change(*old)) {
			return old
		}
	}
}

// share is what one commit added for one run: the unit of eviction.
type share struct {
	of     *recent
	chunks int
	head   int64 // of the run, after it
	cost   int64
}

func newWindow(limit int64) *window {
	return &window{runs: map[ulid.ULID]*recent{}, limit: max(limit, 0)}
}

// get is what memory has of a run; nil where it has none.
func (w *window) get(id ulid.ULID) *view {
	w.mu.RLock()
	r := w.runs[id]
	w.mu.RUnlock()
	if r == nil {
		return nil
	}
	if v := r.view.Load(); !v.gone {
		return v
	}
	return nil
}

// read answers from memory where it can: not for what was evicted, and not beyond the head that it
// knows, since another reader may have seen a commit that is announced in a moment.
func (w *window) read(id ulid.ULID, from int64, max int) (buffer.Page, bool) {
	v := w.get(id)
	if v == nil {
		return buffer.Page{}, false
	}
	return v.page(from, max)
}

// page is what memory alone can answer.
func (v *view) page(from int64, max int) (buffer.Page, bool) {
	if from < v.first || from > v.run.Head {
		return buffer.Page{}, false
	}
	if max <= 0 {
		return buffer.Page{Run: *v.run}, true
	}
	rest := v.chunks[from-v.first:]
	n := fit(rest, max)
	return buffer.Page{Run: *v.run, Chunks: rest[:n:n]}, true
}

// fit is the number of chunks that fit into max bytes, and at least one where there is one.
func fit(chunks []buffer.Chunk, max int) int {
	if len(chunks) == 0 {
		return 0
	}
	limit := chunks[0].End - int64(len(chunks[0].Data)) + int64(max)
	n := sort.Search(len(chunks), func(i int) bool { return chunks[i].End > limit })
	if n == 0 {
		return 1
	}
	return n
}

// publish shows what a commit did to a run, and returns the bell to ring when all is shown. Runs of other
// owners and runs that ended before are not taken up, and nil: they are read from the file.
func (w *window) publish(d *draft) (*recent, chan struct{}) {
	r := w.runs[d.run.ID]
	if r == nil {
		if !d.fresh {
			return nil, nil
		}
		r = &recent{row: d.row, owner: d.owner, key: d.key, sealed: make(chan struct{})}
		r.view.Store(&view{run: &d.run, bell: make(chan struct{})})
		w.mu.Lock()
		w.runs[d.run.ID] = r
		w.mu.Unlock()
	}
	r.stored = d.stored
	old := r.replace(func(v view) *view {
		// Readers hold shorter slices of the same array; appending behind their ends is invisible to them.
		chunks := append(roomier(v.chunks, len(d.added)), d.added...)
		return &view{run: &d.run, first: v.first, chunks: chunks, bell: make(chan struct{})}
	})
	if len(d.added) > 0 {
		w.add(share{of: r, chunks: len(d.added), head: d.run.Head, cost: cost(d.added)})
	}
	if d.run.State.Ended() && (d.fresh || old.run.State.Live()) {
		w.add(share{of: r, cost: runCost + weight(&d.run)})
	}
	return r, old.bell
}

// roomier has room for n more chunks. A run grows in many small steps, for which append alone would copy each
// chunk about five times, and this three times.
func roomier(chunks []buffer.Chunk, n int) []buffer.Chunk {
	if len(chunks)+n <= cap(chunks) {
		return chunks
	}
	return slices.Grow(chunks, max(n, len(chunks)/2))
}

// cost is what is reckoned for chunks.
func cost(chunks []buffer.Chunk) int64 { return span(chunks) + int64(len(chunks))*chunkCost }

// weight is what a run's own facts take beyond the ordinary, in bytes.
func weight(r *buffer.Run) int64 {
	n := len(r.Partial) + len(r.Path) + len(r.Model)
	for name, values := range r.Header {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return int64(n)
}

func (w *window) add(s share) {
	w.order = append(w.order, s)
	s.of.shares++
	s.of.held += s.cost
	w.held += s.cost
}

// evict gives up the oldest until the rest fits: an ended run as a whole, of a live run its oldest
// chunks only, and none that is not in a segment yet: the writer puts it there before long.
func (w *window) evict() {
	w.sift()
	for w.held > w.limit && len(w.order) > 0 {
		s := w.order[0]
		if !s.of.over(s.head) {
			return
		}
		w.order[0] = share{}
		w.order = w.order[1:]
		s.of.shares--
		switch {
		case s.of.gone:
			w.stale--
		case s.of.view.Load().run.State.Ended():
			w.forget(s.of.view.Load().run.ID)
		default:
			s.of.trim(s.chunks)
			s.of.held -= s.cost
			w.held -= s.cost
		}
	}
}

// sift drops the shares of runs that were forgotten, once they are the greater part: a window that never
// gets full would keep them for ever.
func (w *window) sift() {
	if w.stale <= len(w.order)/2 {
		return
	}
	w.order = slices.DeleteFunc(w.order, func(s share) bool { return s.of.gone })
	w.stale = 0
}

// trim drops the run's oldest n chunks. The array goes when most of it is dead.
func (r *recent) trim(n int) {
	v := r.view.Load()
	rest := v.chunks[n:]
	r.dead += n
	if r.dead >= len(rest) {
		rest = slices.Clone(rest)
		r.dead = 0
	}
	r.replace(func(v view) *view { // with the bell that it has by now
		return &view{run: v.run, first: v.first + int64(n), chunks: rest, bell: v.bell}
	})
}

// forget drops a run: it is read from the file from now on, and its bell is another.
func (w *window) forget(id ulid.ULID) {
	r := w.runs[id]
	if r == nil {
		return
	}
	w.mu.Lock()
	delete(w.runs, id)
	w.mu.Unlock()
	r.gone = true
	w.held -= r.held
	w.stale += r.shares
	r.end()
}

// end rings for the last time. Whoever still knows the run keeps none of its chunks alive.
func (r *recent) end() {
	old := r.replace(func(v view) *view {
		v.gone, v.chunks = true, nil
		return &v
	})
	close(old.bell)
	close(r.sealed)
}

// sealed is closed when nothing can be appended to the run any more. A run that memory does not know has ended.
func (w *window) sealed(id ulid.ULID) <-chan struct{} {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if r := w.runs[id]; r != nil {
		return r.sealed
	}
	over := make(chan struct{})
	close(over)
	return over
}

// wake rings the run's bell without a commit, for whoever knows something else of it.
func (w *window) wake(id ulid.ULID) {
	w.mu.RLock()
	r := w.runs[id]
	w.mu.RUnlock()
	if r == nil {
		return
	}
	old := r.replace(func(v view) *view {
		if !v.gone {
			v.bell = make(chan struct{})
		}
		return &v
	})
	if !old.gone {
		close(old.bell)
	}
}

// ringAll wakes all who watch runs in the window, once the writer has ended.
func (w *window) ringAll() {
	for _, r := range w.runs {
		r.end()
	}
}
