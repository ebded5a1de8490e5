package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// The bounds of one transaction: a batch is whatever arrived while the last one was committed, but
// it ends after so many bytes or chunks, so that no commit takes long and memory stays bounded.
const (
	batchBytes  = 2 << 20
	batchChunks = 1 << 14
	// batchSteps bounds what is more than chunks for a live run: each such request costs as much as some
	// hundred chunks, and a thousand calls that begin together must not hold up the answers that come.
	batchSteps = 64
)

// maxQueued bounds the requests whose callers have left while the file could not be written.
const maxQueued = 1 << 16

// request is one caller's wish. The writer sets err and then closes done.
type request struct {
	ctx    context.Context
	op     op
	chunks int
	bytes  int
	err    error
	done   chan struct{}
}

func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}

// live reports whether the request only adds chunks to a live run.
func (r *request) live() bool {
	o, ok := r.op.(*appendOp)
	return ok && o.state.Live()
}

// lane is requests in their order of arrival.
type lane []*request

// take cuts off the first ones, no more than most, and no more than one transaction is to have.
func (l *lane) take(most int) []*request {
	n, chunks, bytes := 0, 0, 0
	for n < min(len(*l), most) && chunks < batchChunks && bytes < batchBytes {
		chunks += 1 + (*l)[n].chunks
		bytes += (*l)[n].bytes
		n++
	}
	taken := (*l)[:n:n]
	*l = (*l)[n:]
	return taken
}

// queue holds accepted requests. Those of one caller come one after the other: each waits for its answer.
type queue struct {
	wake chan struct{} // holds one token while there may be something to take
	over chan struct{} // closed when nothing more is accepted

	mu     sync.Mutex
	chunks lane // of live runs
	steps  lane // all else
	closed bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), over: make(chan struct{})} }

// do has the writer carry out o, and waits for its answer or for the context's end. In the second
// case the request may still be committed.
func (q *queue) do(ctx context.Context, o op, chunks, bytes int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{ctx: ctx, op: o, chunks: chunks, bytes: bytes, done: make(chan struct{})}
	if err := q.put(r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	// Both may be so; the answer is the better one.
	select {
	case <-r.done:
		return r.err
	default:
		return ctx.Err()
	}
}

func (q *queue) put(r *request) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return buffer.ErrClosed
	}
	if len(q.chunks)+len(q.steps) >= maxQueued {
		q.mu.Unlock()
		return fmt.Errorf("%w: %d requests wait already", buffer.ErrStorage, maxQueued)
	}
	if r.live() {
		q.chunks = append(q.chunks, r)
	} else {
		q.steps = append(q.steps, r)
	}
	q.mu.Unlock()
	q.ring()
	return nil
}

// take waits for work and returns one batch of it; nil once the queue is closed and empty.
func (q *queue) take() []*request {
	for {
		q.mu.Lock()
		batch := slices.Concat(q.chunks.take(maxQueued), q.steps.take(batchSteps))
		closed := q.closed
		q.mu.Unlock()
		if len(batch) > 0 {
			return batch
		}
		if closed {
			return nil
		}
		<-q.wake
	}
}

// close accepts nothing from now on; what is there already is still taken. It is called once.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	close(q.over)
	q.ring()
}

func (q *queue) isClosed() bool {
	select {
	case <-q.over:
		return true
	default:
		return false
	}
}

// pause waits for d, and reports whether the queue was closed meanwhile.
func (q *queue) pause(d time.Duration) bool {
	select {
	case <-q.over:
		return true
	case <-time.After(d):
		return false
	}
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default: // a token is there already
	}
}
