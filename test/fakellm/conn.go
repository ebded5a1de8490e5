package fakellm

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// serve answers the requests of one connection in turn, until either side has had enough.
func (s *Server) serve(c net.Conn, n int) {
	defer s.drop(c)
	limit := &io.LimitedReader{R: c}
	br := bufio.NewReader(limit)
	for {
		limit.N = maxRequest
		if c.SetReadDeadline(time.Now().Add(idleTimeout)) != nil {
			return
		}
		req, body, err := readRequest(c, br)
		if err != nil {
			return
		}
		if !s.exchange(c, br, n, req, body) {
			return
		}
	}
}

// exchange plays the answer of one request and reports whether another may follow.
func (s *Server) exchange(c net.Conn, br *bufio.Reader, n int, req *http.Request, body []byte) bool {
	rec := &record{Request: Request{
		Conn: n, Method: req.Method, Target: req.RequestURI, Header: req.Header, Body: body, At: time.Now(),
	}}
	ops := s.answer(rec, req)
	if rec.Route != reportRoute {
		s.add(rec)
	}

	var watcher sync.WaitGroup
	gone := make(chan struct{})
	if c.SetReadDeadline(time.Time{}) != nil {
		s.ended(rec)
		return false
	}
	watcher.Go(func() { s.watch(c, br, rec, gone) })
	p := player{
		conn: c, gone: gone, quit: s.quit, bare: req.Method == http.MethodHead,
		wrote: func(n int) { s.wrote(rec, n) },
		last:  func() { rec.last.Store(true) },
	}
	reusable := p.play(ops) && !req.Close
	s.ended(rec)

	// The watcher ends with the first byte of the next request, or with the connection.
	if !reusable || c.SetReadDeadline(time.Now().Add(idleTimeout)) != nil {
		_ = c.Close() // perhaps the script has done so before
	}
	watcher.Wait()
	select {
	case <-gone:
		return false
	default:
		return reusable
	}
}

// watch closes gone when the connection ends or idles for too long, and notes a peer that left.
func (s *Server) watch(c net.Conn, br *bufio.Reader, rec *record, gone chan<- struct{}) {
	_, err := br.Peek(1)
	if err == nil {
		return // the next request: it is not taken before this answer is over
	}
	if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		s.left(rec)
	}
	close(gone)
	// An answer that is stuck in a write notices as well.
	_ = c.SetWriteDeadline(time.Now())
}

func (s *Server) drop(c net.Conn) {
	_ = c.Close() // most often for the second time
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// readRequest reads one whole request. The connection is told to go on where the peer waits for that.
func readRequest(conn net.Conn, br *bufio.Reader) (*http.Request, []byte, error) {
	r, err := http.ReadRequest(br)
	if err != nil {
		return nil, nil, err
	}
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, nil, err
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Host", r.Host) // ReadRequest takes these two out; tests want what was sent
	if len(r.TransferEncoding) > 0 {
		r.Header["Transfer-Encoding"] = slices.Clone(r.TransferEncoding)
	}
	return r, body, nil
}
