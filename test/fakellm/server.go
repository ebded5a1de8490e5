package fakellm

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	maxConns    = 1 << 15
	idleTimeout = 2 * time.Minute       // for a request to arrive, its body included
	acceptPause = 10 * time.Millisecond // after an Accept that failed, say for want of descriptors
)

// Config is how a Server answers where it has no script. The zero value is useful.
type Config struct {
	Text       string        // what a generation call is answered with; "" is DefaultText
	Every      time.Duration // the pause between two events of that answer
	Recordings []Recording   // served at /{name}[,chunk=N][,ms=N][,cut=N][,end=N]/…
}

// Server is the scripted provider. Its methods are safe for concurrent use.
type Server struct {
	URL string // http://host:port

	config     Config
	recordings map[string]Recording
	ln         net.Listener
	quit       chan struct{} // closed by Close
	work       sync.WaitGroup
	waiters    atomic.Int32

	mu        sync.Mutex
	closed    bool
	conns     map[net.Conn]struct{}
	accepted  int
	scripts   map[string]*script
	records   []*record
	bodyBytes int
	total     int
	counts    map[string]int
	changed   chan struct{} // closed when a request changes, if anybody waits
}

// script is the answers of a route and how many of its requests have come.
type script struct {
	answers [][]Op
	asked   int
}

// Start starts a server on a free port of the loopback and closes it when the test ends.
func Start(tb testing.TB, config Config) *Server {
	tb.Helper()
	s, err := New("127.0.0.1:0", config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// New starts a server on a TCP address.
func New(addr string, config Config) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("fakellm: %w", err)
	}
	return On(ln, config), nil
}

// On starts a server on a listener, which it owns from then on.
func On(ln net.Listener, config Config) *Server {
	if config.Text == "" {
		config.Text = DefaultText
	}
	s := &Server{
		URL:        "http://" + ln.Addr().String(),
		config:     config,
		recordings: make(map[string]Recording),
		ln:         ln,
		quit:       make(chan struct{}),
		conns:      make(map[net.Conn]struct{}),
		scripts:    make(map[string]*script),
		counts:     make(map[string]int),
		changed:    make(chan struct{}),
	}
	for _, r := range config.Recordings {
		s.recordings[r.Name] = r
	}
	s.work.Go(s.accept)
	return s
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Script sets what a route answers: its i-th request from now on gets answers[i], later ones the
// last. A route is a first path segment ("primary") or a longer prefix of whole segments; the longest
// that fits wins, and "" fits every path. Without answers the route has its default again.
func (s *Server) Script(route string, answers ...[]Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := routeName(route)
	if len(answers) == 0 {
		delete(s.scripts, name)
		return
	}
	s.scripts[name] = &script{answers: answers}
}

// Close closes the listener and every connection, and waits until all of it has ended.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
		// Neither close can be acted upon: the server is over either way.
		_ = s.ln.Close()
		for c := range s.conns {
			_ = c.Close()
		}
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err == nil {
			s.admit(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case <-s.quit:
			return
		case <-time.After(acceptPause):
		}
	}
}

func (s *Server) admit(c net.Conn) {
	s.mu.Lock()
	full := s.closed || len(s.conns) >= maxConns
	if !full {
		s.accepted++
		s.conns[c] = struct{}{}
	}
	n := s.accepted
	s.mu.Unlock()
	if full {
		_ = c.Close() // the refusal itself
		return
	}
	s.work.Go(func() { s.serve(c, n) })
}

// scripted returns the script of a path, if it has one, and counts the request. The caller holds mu.
func (s *Server) scripted(path string) (route string, ops []Op, ok bool) {
	for name := range s.scripts {
		if under(path, name) && (!ok || len(name) > len(route)) {
			route, ok = name, true
		}
	}
	if !ok {
		return "", nil, false
	}
	sc := s.scripts[route]
	ops = sc.answers[min(sc.asked, len(sc.answers)-1)]
	sc.asked++
	return route, ops, true
}

func under(path, route string) bool {
	rest, ok := strings.CutPrefix(routeName(path), route)
	return ok && (route == "" || rest == "" || rest[0] == '/')
}

func routeName(path string) string { return strings.Trim(path, "/") }
