package sqlite

import (
	"sync"

	"github.com/oklog/ulid/v2"
)

// bells holds a channel for each run that somebody watches, and for no other. Ringing closes the
// channel and forgets it; who wants to know more takes the next one, and then reads.
type bells struct {
	mu     sync.Mutex
	of     map[ulid.ULID]*bell
	closed bool
}

type bell struct {
	rung     chan struct{}
	watchers int
}

func newBells() *bells { return &bells{of: map[ulid.ULID]*bell{}} }

// watch hands out the run's bell. After ringAll it has rung already.
func (b *bells) watch(id ulid.ULID) (<-chan struct{}, func()) {
	b.mu.Lock()
	bl := b.of[id]
	if bl == nil {
		bl = &bell{rung: make(chan struct{})}
	}
	closed := b.closed
	if !closed {
		b.of[id] = bl
	}
	bl.watchers++
	b.mu.Unlock()
	if closed {
		close(bl.rung) // nobody else has this one
	}
	return bl.rung, sync.OnceFunc(func() { b.leave(id, bl) })
}

func (b *bells) leave(id ulid.ULID, bl *bell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bl.watchers--
	if bl.watchers == 0 && b.of[id] == bl {
		delete(b.of, id)
	}
}

// ring wakes who watches the run now.
func (b *bells) ring(id ulid.ULID) {
	b.mu.Lock()
	bl := b.of[id]
	delete(b.of, id)
	b.mu.Unlock()
	if bl != nil {
		close(bl.rung)
	}
}

// ringAll wakes everybody, and whoever comes later at once: they will read that the store is closed.
func (b *bells) ringAll() {
	b.mu.Lock()
	all := b.of
	b.of, b.closed = map[ulid.ULID]*bell{}, true
	b.mu.Unlock()
	for _, bl := range all {
		close(bl.rung)
	}
}
