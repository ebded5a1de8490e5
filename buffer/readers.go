package buffer

import (
	"context"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// readers counts the open tails of one run in this process.
type readers struct {
	n       int
	callers int         // of them, those on a provider route
	leave   *time.Timer // runs while nobody reads a run that is to be cancelled then
}

// Attach counts one reader of the run until detach is called; ctx is its call's, and caller says that it
// came by the provider's route. While there is a reader, the run's chunks are kept; when the last one leaves, the
// run's own OnDisconnect decides.
func (rs *Runs) Attach(ctx context.Context, id ulid.ULID, caller bool) (detach func()) {
	left := rs.cfg().observer().Joined(ctx, id, caller)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.readers[id]
	if r == nil {
		r = &readers{}
		rs.readers[id] = r
	}
	r.n++
	if caller {
		r.callers++
	}
	if r.leave != nil {
		r.leave.Stop()
		r.leave = nil
	}
	return sync.OnceFunc(func() { rs.detach(id, r, caller); left() })
}

func (rs *Runs) detach(id ulid.ULID, r *readers, caller bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if caller {
		r.callers--
	}
	if r.n--; r.n > 0 {
		return
	}
	d := rs.live[id]
	if d == nil {
		rs.rests.drop(id)
	}
	if d == nil || !d.started.OnDisconnect.Cancel || rs.handed {
		rs.forget(id, r)
		return
	}
	r.leave = time.AfterFunc(d.started.OnDisconnect.After, func() { rs.left(id, r, d) })
}

// left ends a run that nobody has read for as long as it allows.
func (rs *Runs) left(id ulid.ULID, r *readers, d *drain) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.n > 0 || rs.readers[id] != r || rs.handed {
		return
	}
	delete(rs.readers, id)
	d.stop(stopped{Cancelled, ClientGone})
}

// HandOver says that readers come to another process from now on, which nobody here counts: no run is
// cancelled for want of them any more.
func (rs *Runs) HandOver() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.handed = true
	for id, r := range rs.readers {
		if r.leave != nil {
			r.leave.Stop()
			r.leave = nil
			rs.forget(id, r)
		}
	}
}

// Tails is how many tails are open in this process.
func (rs *Runs) Tails() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	n := 0
	for _, r := range rs.readers {
		n += r.n
	}
	return n
}

// hold makes the run's caller present until release is called, though nothing is read yet. alone says
// that no other caller was there.
func (rs *Runs) hold(id ulid.ULID) (release func(), alone bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.readers[id]
	if r == nil {
		r = &readers{}
		rs.readers[id] = r
	}
	r.callers++
	return sync.OnceFunc(func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if r.callers--; r.leave == nil {
			rs.forget(id, r)
		}
	}), r.callers == 1
}

// forget drops the count of a run that nobody reads or is about to. The lock is held.
func (rs *Runs) forget(id ulid.ULID, r *readers) {
	if r.n == 0 && r.callers == 0 && rs.readers[id] == r {
		delete(rs.readers, id)
	}
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
