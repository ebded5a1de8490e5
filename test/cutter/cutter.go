// Package cutter is a TCP proxy for tests that cuts the connections it carries, wherever it is told to:
// in a request, in an answer's head or in its body.
package cutter

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Limit is after how many bytes a connection is cut, in each direction; below 0 it is not. It is cut
// by a close, or by a reset.
type Limit struct {
	Up, Down int64
	Reset    bool
}

// Whole cuts nothing: a plan, or what one says of a connection.
func Whole(int) Limit { return Limit{Up: -1, Down: -1} }

// Cutter is the proxy, between clients and one target.
type Cutter struct {
	URL string // http://host:port

	target string
	plan   func(n int) Limit
	ln     net.Listener
	cuts   atomic.Int64
	work   sync.WaitGroup

	mu    sync.Mutex
	ended bool
	conns []net.Conn
}

// Start starts a cutter in front of a base URL; it ends with the test. plan says where the n-th
// connection is cut, from 0, and may be called from several goroutines.
func Start(tb testing.TB, target string, plan func(n int) Limit) *Cutter {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cutter{URL: "http://" + ln.Addr().String(), target: strings.TrimPrefix(target, "http://"), plan: plan, ln: ln}
	c.work.Go(c.accept)
	tb.Cleanup(func() {
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

func (c *Cutter) accept() {
	for n := 0; ; n++ {
		conn, err := c.ln.Accept()
		if err != nil {
			return // the test is over
		}
		if c.own(conn) {
			c.work.Go(func() { c.carry(conn.(*net.TCPConn), c.plan(n)) })
		}
	}
}

// own takes charge of a connection, or closes it where the cutter has ended.
func (c *Cutter) own(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		conn.Close()
		return false
	}
	c.conns = append(c.conns, conn)
	return true
}

func (c *Cutter) carry(client *net.TCPConn, l Limit) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil || !c.own(server) {
		return // the client sees its connection closed
	}
	defer server.Close()
	c.work.Go(func() { c.pass(server, client, client, l.Up, l.Reset); server.Close() })
	c.pass(client, server, client, l.Down, l.Reset)
}

// pass copies until either end closes or the limit is reached.
func (c *Cutter) pass(to, from net.Conn, client *net.TCPConn, limit int64, reset bool) {
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

// Cuts is how many connections were cut so far; each is counted before its ends can know of it.
func (c *Cutter) Cuts() int64 { return c.cuts.Load() }

// Drop cuts every connection that there is.
func (c *Cutter) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}
