package buffer

import (
	"context"
	"sync"
	"sync/atomic"
)

const (
	// maxInboxes bounds the bytes of all inboxes together, but for a few kilobytes of each.
	maxInboxes = 16 << 20
	minBatch   = 4 << 10
)

// inboxes is how many there are: the more, the less each may hold.
type inboxes struct{ open atomic.Int64 }

func (i *inboxes) share() int {
	return int(min(max(maxInboxes/max(i.open.Load(), 1), minBatch), maxBatch))
}

func (i *inboxes) enter() *inbox {
	i.open.Add(1)
	return &inbox{all: i, filled: make(chan struct{}, 1), emptied: make(chan struct{}, 1)}
}

func (i *inboxes) leave() { i.open.Add(-1) }

// inbox is where one goroutine leaves what comes from the provider and another takes all of it at once.
// Who finds it full waits, and so a log that cannot follow slows the provider down by TCP.
type inbox struct {
	all     *inboxes
	filled  chan struct{} // holds one token while there is something to take
	emptied chan struct{} // holds one token once somebody has taken

	mu   sync.Mutex
	held arrival
	size int // bytes of its chunks
	any  bool
}

// put adds what has come behind what is there. It reports false when ctx has ended first.
func (b *inbox) put(ctx context.Context, a arrival) bool {
	for {
		if b.add(a) {
			signal(b.filled)
			return true
		}
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return false
		}
	}
}

// taken waits until all that was put has been taken, and reports false when ctx has ended first.
func (b *inbox) taken(ctx context.Context) bool {
	for {
		b.mu.Lock()
		any := b.any
		b.mu.Unlock()
		if !any {
			return true
		}
		select {
		case <-b.emptied:
		case <-ctx.Done():
			return false
		}
	}
}

func (b *inbox) add(a arrival) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size >= b.all.share() {
		return false
	}
	if a.head != nil {
		b.held.head = a.head
	}
	for _, c := range a.chunks {
		b.size += len(c)
	}
	if b.held.chunks == nil {
		b.held.chunks = a.chunks
	} else {
		b.held.chunks = append(b.held.chunks, a.chunks...)
	}
	b.held.err, b.held.partial, b.any = a.err, a.partial, true
	return true
}

// take returns all that is there, and false where that is nothing.
func (b *inbox) take() (arrival, bool) {
	b.mu.Lock()
	a, ok := b.held, b.any
	b.held, b.size, b.any = arrival{}, 0, false
	b.mu.Unlock()
	signal(b.emptied)
	return a, ok
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // there is a token already
	}
}
