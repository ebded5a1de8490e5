package jetstream

import (
	"cmp"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// maxPlaces bounds the places of chunks that are known.
const maxPlaces = 1 << 16

// index is what this node knows of all runs: it may be late, and is never ahead.
type index struct {
	mu     sync.RWMutex
	runs   map[ulid.ULID]*entry
	order  []ulid.ULID // of the runs, oldest first
	places map[place]uint64
}

// entry is one run's last known version, without its ledger and its Partial. It is not changed once it
// is in the index.
type entry struct {
	run     buffer.Run
	owner   string
	swept   bool
	partial bool // there is a Partial, in the record
	seq     uint64
	rec     uint64
}

// place is a position of a run. The message with the chunk is not before the sequence that is known
// for it, and no other of the run's chunks is between.
type place struct {
	id  ulid.ULID
	pos int64
}

func newIndex() *index {
	return &index{runs: map[ulid.ULID]*entry{}, places: map[place]uint64{}}
}

func (x *index) len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.runs)
}

func (x *index) get(id ulid.ULID) (*entry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.runs[id]
	return e, ok
}

// older orders runs by their creation, then by their ids.
func older(a, b buffer.Run) int {
	return cmp.Or(a.Created.Compare(b.Created), a.ID.Compare(b.ID))
}

// find is the place in the order of r, which need not be there.
func (x *index) find(r buffer.Run) (int, bool) {
	return slices.BinarySearchFunc(x.order, r, func(id ulid.ULID, r buffer.Run) int { return older(x.runs[id].run, r) })
}

// listed is r as List gives it, and Read but for its Partial.
func listed(r buffer.Run) buffer.Run {
	r.Attempts = nil
	return r
}

// put takes a version in, and reports whether it is news.
func (x *index) put(v version) bool {
	e := &entry{run: listed(v.Run), owner: v.Owner, swept: v.Swept, partial: v.Run.Partial != nil, seq: v.seq, rec: v.rec}
	e.run.Partial = nil
	return x.set(e)
}

func (x *index) set(e *entry) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	have, known := x.runs[e.run.ID]
	if known && have.seq >= e.seq {
		return false
	}
	if known && !have.run.Created.Equal(e.run.Created) { // a new run under the id of a forgotten one
		x.remove(have)
		known = false
	}
	if !known {
		at, _ := x.find(e.run)
		x.order = slices.Insert(x.order, at, e.run.ID)
	}
	x.runs[e.run.ID] = e
	return true
}

// forget removes a run, if nothing is known of it after seq.
func (x *index) forget(id ulid.ULID, seq uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.runs[id]; ok && e.seq <= seq {
		x.remove(e)
	}
}

// remove is for who holds the lock.
func (x *index) remove(e *entry) {
	if at, found := x.find(e.run); found {
		x.order = slices.Delete(x.order, at, at+1)
	}
	delete(x.runs, e.run.ID)
}

// page returns up to size runs that match, newest first, after the run last where there is one.
func (x *index) page(last *buffer.Run, size int, match func(*entry) bool) (page []*entry) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at := len(x.order)
	if last != nil {
		at, _ = x.find(*last)
	}
	for at--; at >= 0 && len(page) < size; at-- {
		if e := x.runs[x.order[at]]; match(e) {
			page = append(page, e)
		}
	}
	return page
}

// all returns the runs that match, oldest first.
func (x *index) all(match func(*entry) bool) (all []*entry) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, id := range x.order {
		if e := x.runs[id]; match(e) {
			all = append(all, e)
		}
	}
	return all
}

// note remembers where the chunk at a position is to be looked for. Of too many places any is dropped:
// it can be found again.
func (x *index) note(id ulid.ULID, pos int64, seq uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p := range x.places {
		if len(x.places) < maxPlaces {
			break
		}
		delete(x.places, p)
	}
	x.places[place{id, pos}] = seq
}

func (x *index) noted(id ulid.ULID, pos int64) (uint64, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	seq, ok := x.places[place{id, pos}]
	return seq, ok
}
