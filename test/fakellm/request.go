package fakellm

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// What the record of requests may hold; the oldest go first, counts stay exact.
const (
	keepRequests  = 4096
	keepBodyBytes = 256 << 20
	maxRequest    = 64 << 20 // bytes of one request; a longer one is closed unanswered
	maxRoutes     = 1024     // counted one by one
)

// Request is one physical request, read to its end, and what became of its answer.
type Request struct {
	Conn    int // the connection, from 1, in the order they were accepted
	Route   string
	Method  string
	Target  string // path and query as they came
	Header  http.Header
	Body    []byte
	At      time.Time // read to its end
	Written int64     // bytes of the answer, its head and framing included
	Ended   time.Time // the answer is over; zero while it plays
	Closed  time.Time // the peer left while the answer played; zero if it did not
}

// record is a Request in the making.
type record struct {
	Request              // Ended and Closed: Server.mu; the rest does not change
	written atomic.Int64 // stands for Written
	last    atomic.Bool  // the last bytes are on their way: a peer that leaves now misses nothing
}

// Requests returns the requests so far, in the order of their arrival, at most the last 4096.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.records))
	for i, r := range s.records {
		requests[i] = r.Request
		requests[i].Written = r.written.Load()
	}
	return requests
}

// Count returns how many requests a route got: the name its script was set under, else the first
// segment of the path. The route "" stands for all.
func (s *Server) Count(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := routeName(route); name != "" {
		return s.counts[name]
	}
	return s.total
}

// Connections returns how many connections were accepted so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Await returns once done holds for the requests so far; it looks again whenever one arrives, is
// written to, ends or is left. The error is the context's.
func (s *Server) Await(ctx context.Context, done func([]Request) bool) error {
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if done(s.Requests()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ring wakes whoever waits. Without a waiter it costs one atomic load, for the sake of load streams.
func (s *Server) ring() {
	if s.waiters.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) add(r *record) {
	defer s.ring()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if _, known := s.counts[r.Route]; known || len(s.counts) < maxRoutes {
		s.counts[r.Route]++
	}
	s.records = append(s.records, r)
	s.bodyBytes += len(r.Body)
	for len(s.records) > keepRequests || s.bodyBytes > keepBodyBytes {
		s.bodyBytes -= len(s.records[0].Body)
		s.records[0] = nil
		s.records = s.records[1:]
	}
}

func (s *Server) wrote(r *record, n int) {
	r.written.Add(int64(n))
	s.ring()
}

// left notes that the peer has gone, unless its answer was over by then.
func (s *Server) left(r *record) {
	defer s.ring()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Ended.IsZero() && !r.last.Load() {
		r.Closed = time.Now()
	}
}

func (s *Server) ended(r *record) {
	defer s.ring()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Ended = time.Now()
}
