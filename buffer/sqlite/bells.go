package sqlite

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oklog/ulid/v2"
)

// bells holds a channel for each run that somebody watches and that the window does not know: those
// are rung by their view. Ringing closes the channel and forgets it; who wants to know more takes the
// next one, and then reads.
type bells struct {
	watched atomic.Int64 // the size of of: most of the time there is nobody to ring for

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
	defer b.mu.Unlock()
	bl := b.of[id]
	if bl == nil {
		bl = &bell{rung: make(chan struct{})}
		if b.closed {
			close(bl.rung)
			return bl.rung, func() {}
		}
		b.of[id] = bl
		b.watched.Add(1)
	}
	bl.watchers++
	return bl.rung, sync.OnceFunc(func() { b.leave(id, bl) })
}

func (b *bells) leave(id ulid.ULID, bl *bell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bl.watchers--
	if bl.watchers == 0 && b.of[id] == bl {
		delete(b.of, id)
		b.watched.Add(-1)
	}
}

// ring wakes who watches the run now.
func (b *bells) ring(id ulid.ULID) {
	if b.watched.Load() == 0 {
		return
	}
	b.mu.Lock()
	bl := b.of[id]
	if bl != nil {
		delete(b.of, id)
		b.watched.Add(-1)
	}
	b.mu.Unlock()
	if bl != nil {
		close(bl.rung)
	}
}

// wakeAll wakes everybody who watches now: they look whether there is anything new.
func (b *bells) wakeAll() {
	b.mu.Lock()
	watched := slices.Collect(maps.Keys(b.of))
	b.mu.Unlock()
	for _, id := range watched {
		b.ring(id)
	}
}

// ringAll wakes everybody, and whoever comes later at once: they will read that the store is closed.
func (b *bells) ringAll() {
	b.mu.Lock()
	all := b.of
	b.of, b.closed = map[ulid.ULID]*bell{}, true
	b.watched.Store(0)
	b.mu.Unlock()
	for _, bl := range all {
		close(bl.rung)
	}
}
