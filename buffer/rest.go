package buffer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
)

// maxRests bounds what the memory of all runs together holds that the log has refused, in bytes of
// chunks. A run that would go beyond it ends there.
const maxRests = 64 << 20

// rest is what readers get of a run once its log has refused to take something: the answer goes on from
// memory as far as it was received, and ends as interrupted. The run's head stays the log's, since
// nothing that comes after it can be resumed.
type rest struct {
	all *rests

	mu     sync.Mutex
	run    Run // as readers see it
	chunks []Chunk
	size   int64
	bell   chan struct{} // closed when there is more, or the end
}

// rests are those of the runs of this process, for as long as they drain or are read.
type rests struct {
	mu   sync.Mutex
	of   map[ulid.ULID]*rest
	held int64
}

func newRests() *rests { return &rests{of: map[ulid.ULID]*rest{}} }

func (all *rests) get(id ulid.ULID) *rest {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.of[id]
}

func (all *rests) begin(run Run) *rest {
	r := &rest{all: all, run: run, bell: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.of[run.ID] = r
	return r
}

func (all *rests) drop(id ulid.ULID) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r := all.of[id]; r != nil {
		delete(all.of, id)
		all.held -= r.size
	}
}

// take reserves room for n bytes of r, and is false where there is none.
func (all *rests) take(r *rest, n int64) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.held+n > maxRests {
		return false
	}
	all.held += n
	r.size += n
	return true
}

// errRestFull ends an attempt whose answer does not fit into memory.
var errRestFull = errors.New("what the log does not take is more than memory holds")

// add shows chunks behind those that are there.
func (r *rest) add(chunks [][]byte) error {
	if len(chunks) == 0 {
		return nil
	}
	if !r.all.take(r, int64(sizeOf(chunks))) {
		return errRestFull
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pos, end := r.run.Head, r.run.Bytes
	if n := len(r.chunks); n > 0 {
		pos, end = r.chunks[n-1].Pos+1, r.chunks[n-1].End
	}
	for _, data := range chunks {
		end += int64(len(data))
		r.chunks = append(r.chunks, Chunk{Pos: pos, End: end, Data: data})
		pos++
	}
	r.ring()
	return nil
}

// finish shows the end: there was content, or the run has failed.
func (r *rest) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run.State.Ended() {
		return
	}
	r.run.State = r.run.State.Stopped(Interrupted)
	r.run.Outcome, r.run.Reason, r.run.Ended = r.run.State, Storage, time.Now()
	r.ring()
}

func (r *rest) ring() {
	close(r.bell)
	r.bell = make(chan struct{})
}

func (r *rest) watch() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bell
}

// read is a page from position from on, which is the head or beyond it.
func (r *rest) read(from int64, max int) (Page, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	page := Page{Run: r.run}
	skip := from - r.run.Head
	if skip > int64(len(r.chunks)) {
		return page, ErrAhead
	}
	n := 0
	for _, c := range r.chunks[skip:] {
		if max <= 0 || n > 0 && len(c.Data) > max {
			break
		}
		max -= len(c.Data)
		n++
	}
	page.Chunks = r.chunks[skip : skip+int64(n) : skip+int64(n)]
	return page, nil
}

// Following is a log as readers have it who follow a run to its end: where the log has refused the end of an
// answer, it goes on from memory. Those chunks are at positions from the run's head on, and cannot be
// resumed.
type Following struct {
	rests *rests
	log   Store
}

// Following is log with what it has refused to take.
func (rs *Runs) Following(log Store) *Following { return &Following{rs.rests, log} }

// Read is the log's, and then goes on from memory.
func (f *Following) Read(ctx context.Context, id ulid.ULID, from int64, max int) (Page, error) {
	if r := f.rests.get(id); r != nil {
		return f.readRest(ctx, r, from, max)
	}
	return f.log.Read(ctx, id, from, max)
}

func (f *Following) readRest(ctx context.Context, r *rest, from int64, max int) (Page, error) {
	head := r.run.Head // it stays
	if from >= head {
		return r.read(from, max)
	}
	page, err := f.log.Read(ctx, r.run.ID, from, max)
	if err == nil {
		now, _ := r.read(head, 0) // the head is always there
		page.Run = now.Run
	}
	return page, err
}

// Watch is the bell that belongs to Read.
func (f *Following) Watch(id ulid.ULID) (changed <-chan struct{}, stop func()) {
	changed, stop = f.log.Watch(id)
	// Only now: a rest that begins from here on rings the bell that was taken.
	if r := f.rests.get(id); r != nil {
		stop()
		return r.watch(), func() {}
	}
	return changed, stop
}

// goOn has the readers go on from memory with chunks, which the log has refused with err, and with what
// comes. What the log is to be told about the run as soon as it can be is in c.
func (d *drain) goOn(ctx context.Context, chunks [][]byte, c Closing, err error) error {
	d.zap.Error("log refuses; the readers go on from memory", zap.Error(err))
	run := d.started
	if page, err := d.rs.store.Read(ctx, run.ID, d.head, 0); err == nil {
		run = page.Run
	}
	if len(chunks) > 0 {
		run.State = Streaming
	}
	if c.Status != 0 {
		run.Status, run.Header, run.Framing, run.Committed = c.Status, c.Header, c.Framing, time.Now()
	}
	d.rest = d.rs.rests.begin(run)
	err = d.rest.add(chunks)
	d.rs.store.Wake(run.ID)
	c.Reason, c.Attempt = Storage, nil
	d.sealing.Go(func() { d.sealLater(context.WithoutCancel(ctx), run.State, c) })
	return err
}
