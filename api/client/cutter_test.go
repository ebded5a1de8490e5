package client_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// limit is after how many bytes a connection is cut, in each direction; below 0 it is not. A
// connection is cut by a close, or by a reset.
type limit struct {
	up, down int64
	reset    bool
}

var whole = limit{up: -1, down: -1}

// cutter is a TCP proxy between a client and Spool that cuts connections, within heads too.
type cutter struct {
	url    string
	target string
	plan   func(n int) limit // of the n-th connection, from 0
	ln     net.Listener
	cuts   atomic.Int64 // made so far
	work   sync.WaitGroup

	mu    sync.Mutex
	ended bool
	made  int
	conns []net.Conn
}

// newCutter starts a cutter that ends with the test.
func newCutter(t *testing.T, target string, plan func(n int) limit) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{url: "http://" + ln.Addr().String(), target: strings.TrimPrefix(target, "http://"), plan: plan, ln: ln}
	c.work.Go(c.accept)
	t.Cleanup(func() {
		ln.Close()
		c.mu.Lock()
		c.ended = true
		for _, conn := range c.conns {
			conn.Close()
		}
		c.mu.Unlock()
		c.work.Wait()
	})
	return c
}

func (c *cutter) accept() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return // the test is over
		}
		n, ok := c.own(conn)
		if ok {
			c.work.Go(func() { c.carry(conn.(*net.TCPConn), c.plan(n)) })
		}
	}
}

// own takes charge of a connection, or closes it where the cutter has ended.
func (c *cutter) own(conn net.Conn) (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		conn.Close()
		return 0, false
	}
	c.conns = append(c.conns, conn)
	c.made++
	return c.made - 1, true
}

// adopt is own for a connection that is not counted.
func (c *cutter) adopt(conn net.Conn) bool {
	_, ok := c.own(conn)
	c.mu.Lock()
	c.made--
	c.mu.Unlock()
	return ok
}

func (c *cutter) carry(client *net.TCPConn, l limit) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil || !c.adopt(server) {
		return // the client sees its connection closed
	}
	defer server.Close()
	c.work.Go(func() { c.pass(server, client, client, l.up, l.reset); server.Close() })
	c.pass(client, server, client, l.down, l.reset)
}

// pass copies until either end closes or the limit is reached.
func (c *cutter) pass(to, from net.Conn, client *net.TCPConn, limit int64, reset bool) {
	if limit < 0 {
		_, _ = io.Copy(to, from) // ends with either connection
		return
	}
	if _, err := io.CopyN(to, from, limit); err != nil {
		return // it ended by itself
	}
	c.cuts.Add(1)
	if reset {
		_ = client.SetLinger(0) // makes a reset of the close
	}
	client.Close()
}

// drop cuts every connection that there is.
func (c *cutter) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}
