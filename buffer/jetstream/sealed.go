package jetstream

import (
	"sync"

	"github.com/oklog/ulid/v2"
)

// seals are those of the runs that this node appends to. One is closed when another node has ended its
// run, and dropped when this one has.
type seals struct {
	mu sync.Mutex
	of map[ulid.ULID]chan struct{}
}

// begin is the seal of a run that is created here.
func (x *seals) begin(id ulid.ULID) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	sealed := make(chan struct{})
	x.of[id] = sealed
	return sealed
}

// end is called when the run is known to have ended; here says that it was this node that has ended it.
func (x *seals) end(id ulid.ULID, here bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sealed, ours := x.of[id]
	delete(x.of, id)
	if ours && !here {
		close(sealed)
	}
}

// Sealed implements buffer.Log.
func (l *runLog) Sealed() <-chan struct{} { return l.sealed }
