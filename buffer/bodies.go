package buffer

import (
	"sync"
	"time"
)

// bodies bounds what the requests of all runs hold in memory, in bytes: each of them for as long as it may
// have to be sent again.
type bodies struct {
	mu    sync.Mutex
	limit int64
	held  int64
}

func newBodies(limit int64) *bodies { return &bodies{limit: limit} }

// bound sets another limit from now on.
func (b *bodies) bound(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// hold counts a request that a run is about to need, or refuses it with a *BusyError. drop gives its room
// back, the first time that it is called.
func (b *bodies) hold(size int) (drop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(size)
	if b.held+n > b.limit {
		return nil, busy("over limits.bodies: the requests of all runs that wait for their answers take too much memory", time.Second)
	}
	b.held += n
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held -= n
	}), nil
}

// forget gives up the request: nothing of it is sent again.
func (d *drain) forget() {
	d.way.send.Body = nil
	d.drop()
}
