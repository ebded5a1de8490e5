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
	mu     sync.Mutex
	limits QueueLimits
	by     map[gateKey]*gate
}

// gateKey tells gates apart. A route whose limit was configured anew has another gate: those who hold
// slots of the old one leave it empty.
type gateKey struct {
	route, caller string
	limit         int
}

// gate is the slots of one route and caller. It is forgotten when nobody holds or wants one.
type gate struct {
	free    chan struct{} // holds a token for each slot that is taken
	waiting int
	users   int
}

func (l QueueLimits) withDefaults() QueueLimits {
	if l.Length <= 0 {
		l.Length = 100
	}
	if l.Wait <= 0 {
		l.Wait = 30 * time.Second
	}
	return l
}

func newSlots(l QueueLimits) *slots {
	return &slots{limits: l.withDefaults(), by: map[gateKey]*gate{}}
}

// limit sets other limits for those who come from now on.
func (s *slots) limit(l QueueLimits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l.withDefaults()
}

// take waits for a slot. It is false where the queue is full or the wait too long; then the caller
// is refused. limit 0 is without limit.
func (s *slots) take(ctx context.Context, route, caller string, limit int) (release func(), ok bool) {
	if limit <= 0 {
		return func() {}, true
	}
	key := gateKey{route, caller, limit}
	g := s.enter(key)
	release = sync.OnceFunc(func() { <-g.free; s.leave(key, g) })
	select {
	case g.free <- struct{}{}:
		return release, true
	default:
	}
	wait, ok := s.queue(g)
	if !ok {
		s.leave(key, g)
		return nil, false
	}
	defer s.unqueue(g)
	timer := time.NewTimer(wait)
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

func (s *slots) enter(key gateKey) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.by[key]
	if g == nil {
		g = &gate{free: make(chan struct{}, key.limit)}
		s.by[key] = g
	}
	g.users++
	return g
}

func (s *slots) leave(key gateKey, g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(s.by, key)
	}
}

// queue counts one who waits, and says for how long at most; it is false where too many do.
func (s *slots) queue(g *gate) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.waiting >= s.limits.Length {
		return 0, false
	}
	g.waiting++
	return s.limits.Wait, true
}

func (s *slots) unqueue(g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.waiting--
}
