package jetstream

import (
	"context"
	"sync"
)

// line is the connection to one of the servers, for as long as it lasts. What was asked over it is never
// answered over the next one: who waits for that asks again, and does not sit out his patience.
type line struct {
	mu  sync.Mutex      // guards what follows
	ctx context.Context // ends with the connection, or with the store
	cut context.CancelFunc
}

// renew ends the connection that was there, and begins the next one.
func (l *line) renew(base context.Context) {
	l.mu.Lock()
	cut := l.cut
	l.ctx, l.cut = context.WithCancel(base)
	l.mu.Unlock()
	if cut != nil {
		cut()
	}
}

// lasts is a context that ends with the connection that is there now.
func (l *line) lasts() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx
}
