package buffer

import (
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// readers counts the open tails of one run in this process.
type readers struct {
	n     int
	leave *time.Timer // runs while nobody reads a run that is to be cancelled then
}

// Attach counts one reader of the run until detach is called. While there is one, the run's chunks
// are kept; when the last one leaves, the run's own OnDisconnect decides.
func (rs *Runs) Attach(id ulid.ULID) (detach func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.readers[id]
	if r == nil {
		r = &readers{}
		rs.readers[id] = r
	}
	r.n++
	if r.leave != nil {
		r.leave.Stop()
		r.leave = nil
	}
	return sync.OnceFunc(func() { rs.detach(id, r) })
}

func (rs *Runs) detach(id ulid.ULID, r *readers) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.n--; r.n > 0 {
		return
	}
	d := rs.live[id]
	if d == nil || !d.started.OnDisconnect.Cancel {
		delete(rs.readers, id)
		return
	}
	r.leave = time.AfterFunc(d.started.OnDisconnect.After, func() { rs.left(id, r, d) })
}

// left ends a run that nobody has read for as long as it allows.
func (rs *Runs) left(id ulid.ULID, r *readers, d *drain) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.n > 0 || rs.readers[id] != r {
		return
	}
	delete(rs.readers, id)
	d.stop(stopped{Cancelled, ClientGone})
}

// Readers is how many tails of the run are open in this process.
func (rs *Runs) Readers(id ulid.ULID) int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.readers[id]; r != nil {
		return r.n
	}
	return 0
}
