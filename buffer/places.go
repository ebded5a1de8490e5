package buffer

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oklog/ulid/v2"
)

// places is how far the open tails of each run have come. They are told by the tails themselves, so
// that who looks waits for no reader.
type places struct {
	mu sync.Mutex
	by map[ulid.ULID]map[*atomic.Int64]bool
}

func newPlaces() *places { return &places{by: map[ulid.ULID]map[*atomic.Int64]bool{}} }

// Place makes an open tail of the run visible. reached is told the position of the next chunk that
// its reader is to get; leave ends it and must be called.
func (rs *Runs) Place(id ulid.ULID) (reached func(pos int64), leave func()) {
	p, at := rs.places, new(atomic.Int64)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[id] == nil {
		p.by[id] = map[*atomic.Int64]bool{}
	}
	p.by[id][at] = true
	return at.Store, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if delete(p.by[id], at); len(p.by[id]) == 0 {
			delete(p.by, id)
		}
	}
}

// Places is the position of each reader of the run in this process, the furthest first.
func (rs *Runs) Places(id ulid.ULID) []int64 {
	p := rs.places
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int64
	for at := range p.by[id] {
		all = append(all, at.Load())
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}
