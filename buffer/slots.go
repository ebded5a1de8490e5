package buffer

import (
	"context"
	"sync"
	"time"
)

// QueueLimits bound how calls wait for a route whose provider.Route.Concurrency is reached.
type QueueLimits struct {
	Length int           // calls that wait at most, for each route and caller; default 100
	Wait   time.Duration // how long one waits at most; default 30 s
}

// slots limits how many attempts of one caller are under way on one route: a bounded queue with a
// deadline in front of a semaphore. A slot is held until the drain of the attempt ends, not until
// its caller leaves.
type slots struct {
	limits QueueLimits

	mu sync.Mutex
	by map[[2]string]*gate
}

// gate is the slots of one route and caller. It is forgotten when nobody holds or wants one.
type gate struct {
	free    chan struct{} // holds a token for each slot that is taken
	waiting int
	users   int
}

func newSlots(l QueueLimits) *slots {
	if l.Length <= 0 {
		l.Length = 100
	}
	if l.Wait <= 0 {
		l.Wait = 30 * time.Second
	}
	return &slots{limits: l, by: map[[2]string]*gate{}}
}

// take waits for a slot. It is false where the queue is full or the wait too long; then the caller
// is refused. limit 0 is without limit.
func (s *slots) take(ctx context.Context, route, caller string, limit int) (release func(), ok bool) {
	if limit <= 0 {
		return func() {}, true
	}
	key := [2]string{route, caller}
	g := s.enter(key, limit)
	release = sync.OnceFunc(func() { <-g.free; s.leave(key, g) })
	select {
	case g.free <- struct{}{}:
		return release, true
	default:
	}
	if !s.queue(g) {
		s.leave(key, g)
		return nil, false
	}
	defer s.unqueue(g)
	timer := time.NewTimer(s.limits.Wait)
	defer timer.Stop()
	select {
	case g.free <- struct{}{}:
		return release, true
	case <-timer.C:
	case <-ctx.Done():
	}
	s.leave(key, g)
	return nil, false
}

func (s *slots) enter(key [2]string, limit int) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.by[key]
	if g == nil {
		g = &gate{free: make(chan struct{}, limit)}
		s.by[key] = g
	}
	g.users++
	return g
}

func (s *slots) leave(key [2]string, g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(s.by, key)
	}
}

func (s *slots) queue(g *gate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.waiting >= s.limits.Length {
		return false
	}
	g.waiting++
	return true
}

func (s *slots) unqueue(g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.waiting--
}
