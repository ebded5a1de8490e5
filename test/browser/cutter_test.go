//go:build browser

package browser

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cutter is a TCP proxy whose connections can be reset, as a network that goes away does.
type cutter struct {
	target string
	ln     net.Listener
	work   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func startCutter(t *testing.T, target string) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{target: target, ln: ln, conns: map[net.Conn]bool{}}
	c.work.Go(c.accept)
	t.Cleanup(func() {
		ln.Close()
		c.cut()
		c.work.Wait()
	})
	return c
}

func (c *cutter) accept() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return // the listener is closed
		}
		c.work.Go(func() { c.carry(conn) })
	}
}

// carry joins a client to the target until either of them closes, or the cut.
func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return // the client sees its connection closed
	}
	defer server.Close()
	c.own(client, true)
	defer c.own(client, false)
	c.work.Go(func() {
		_, _ = io.Copy(server, client) // ends with either connection
		server.Close()
	})
	_, _ = io.Copy(client, server) // likewise
}

func (c *cutter) own(conn net.Conn, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		c.conns[conn] = true
	} else {
		delete(c.conns, conn)
	}
}

// cut resets every client.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0) // makes a reset of the Close
		conn.Close()
	}
}
