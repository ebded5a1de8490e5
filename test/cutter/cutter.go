// Package cutter is a TCP proxy for tests that breaks the connections it carries, each in a way of its
// own: toxiproxy's links and toxics, which are told what to do connection by connection.
package cutter

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Cutter is the proxy, between clients and one target. toxiproxy's own would do the same to all of its
// connections at once: so it is this one that accepts, and each connection has a proxy of toxiproxy's
// to itself.
type Cutter struct {
	URL string // http://host:port

	plan   func(n int) Cut
	server *toxiproxy.ApiServer
	ln     net.Listener
	made   atomic.Int64
	cuts   atomic.Int64
	work   sync.WaitGroup

	mu     sync.Mutex
	target string
	drops  int
	ended  bool
	conns  map[net.Conn]bool
}

// Start starts a cutter in front of a base URL; it ends with the test. plan says what becomes of the
// n-th connection, from 0, one after the other.
func Start(tb testing.TB, target string, plan func(n int) Cut) *Cutter {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	toxics.Register(bodyLimit, new(limitBody))
	c := &Cutter{
		URL: "http://" + ln.Addr().String(), plan: plan, ln: ln,
		server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), conns: map[net.Conn]bool{},
	}
	c.Aim(target)
	c.work.Go(func() { c.accept(tb) })
	tb.Cleanup(func() {
		ln.Close()
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		c.Drop()
		c.work.Wait()
	})
	return c
}

// Aim gives the connections to come another target, a base URL.
func (c *Cutter) Aim(target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target = strings.TrimPrefix(target, "http://")
}

// aim is where a connection is to lead that was just accepted, and how often all were dropped before it.
func (c *Cutter) aim() (target string, drops int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target, c.drops
}

// Cuts is how many connections were cut so far; each is counted before its client can know of it.
func (c *Cutter) Cuts() int64 { return c.cuts.Load() }

// Connections is how many were made so far.
func (c *Cutter) Connections() int64 { return c.made.Load() }

// Drop resets every connection that there is, as a network that goes away does: also one that was accepted and
// does not lead anywhere yet.
func (c *Cutter) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	for conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0) // makes a reset of the Close
		conn.Close()
	}
}

func (c *Cutter) accept(tb testing.TB) {
	for n := 0; ; n++ {
		client, err := c.ln.Accept()
		if err != nil {
			return // the test is over
		}
		c.made.Add(1)
		target, drops := c.aim()
		server, err := net.Dial("tcp", target)
		if err != nil {
			client.Close() // all that the client is to know
			continue
		}
		c.carry(tb, client.(*net.TCPConn), server.(*net.TCPConn), c.plan(n), drops)
	}
}

// carry joins a client to its target by two links, each with its toxics. A link closes where it leads
// once it has ended, and the other one then ends too. (Of a link that was cut while more came,
// toxiproxy leaves the goroutine that has it in its hands.)
func (c *Cutter) carry(tb testing.TB, client, server *net.TCPConn, cut Cut, drops int) {
	if !c.own(drops, client, server) {
		return
	}
	if cut.reset {
		_ = client.SetLinger(0) // of a connection that was just made
	}
	proxy := toxiproxy.NewProxy(c.server, client.RemoteAddr().String(), c.ln.Addr().String(), server.RemoteAddr().String())
	for _, t := range cut.toxics {
		text, err := json.Marshal(t)
		if err == nil {
			_, err = proxy.Toxics.AddToxicJson(bytes.NewReader(text))
		}
		if err != nil {
			tb.Errorf("toxic %s: %v", text, err)
		}
	}
	up, down := c.end(server, client), c.end(client, server)
	proxy.Toxics.StartLink(c.server, "up", up.source(), up, stream.Upstream)
	proxy.Toxics.StartLink(c.server, "down", down.source(), down, stream.Downstream)
}

// own takes charge of connections, or closes them where the cutter has ended, or has dropped all since they
// were accepted.
func (c *Cutter) own(drops int, conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.ended || drops != c.drops
	for _, conn := range conns {
		if late {
			conn.Close()
			continue
		}
		c.conns[conn] = true
	}
	return !late
}

func (c *Cutter) disown(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// end is where a link leads.
func (c *Cutter) end(to, from net.Conn) *end {
	c.work.Add(1)
	return &end{Conn: to, from: from, cutter: c}
}

// end is the connection that a link writes to. The link closes it once, when the connection that it
// reads from has ended, or when a toxic has cut.
type end struct {
	net.Conn
	from   net.Conn
	ended  atomic.Bool // one of the two ended by itself
	cutter *Cutter
}

// Write implements io.Writer.
func (e *end) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	if err != nil {
		e.ended.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (e *end) Close() error {
	defer e.cutter.work.Done()
	if !e.ended.Load() {
		e.cutter.cuts.Add(1)
	}
	e.cutter.disown(e.Conn)
	return e.Conn.Close()
}

// source is the connection that the link reads from.
func (e *end) source() source { return source{e} }

type source struct{ *end }

// Read implements io.Reader.
func (s source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if err != nil {
		s.ended.Store(true)
	}
	return n, err
}
