package fakellm

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Pipe starts a server that is reached through dial alone, over pipes in memory, so that server and
// client can live in one synctest bubble. A reset reaches the peer as ECONNRESET, as on a socket; a
// write waits until the peer reads.
func Pipe(tb testing.TB, config Config) (s *Server, dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	tb.Helper()
	ln := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s = On(ln, config)
	tb.Cleanup(s.Close)
	return s, ln.dial
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	reset := new(atomic.Bool)
	select {
	case l.conns <- &pipeConn{Conn: server, reset: reset}:
		return &pipeConn{Conn: client, reset: reset}, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener; it is a name for URLs, nothing listens there.
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// pipeConn is one end of a pipe that can be reset.
type pipeConn struct {
	net.Conn
	reset *atomic.Bool // shared by both ends
}

// SetLinger makes the Close that follows a reset.
func (c *pipeConn) SetLinger(sec int) error {
	c.reset.Store(sec == 0)
	return nil
}

// Read tells a reset from an end.
func (c *pipeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) && c.reset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Err: syscall.ECONNRESET}
	}
	return n, err
}
