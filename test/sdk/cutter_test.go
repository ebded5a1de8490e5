package sdk

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter is a TCP proxy between a client and Spool that breaks its first connections: each after so
// many bytes of the body of its first answer, or of its head where the number is negative, closed and
// reset in turn. Later ones pass.
type cutter struct {
	url    string
	target string
	limits []int64
	ln     net.Listener
	made   atomic.Int64 // connections so far
	work   sync.WaitGroup

	mu    sync.Mutex
	ended bool
	conns []net.Conn
}

// startCutter starts a cutter in front of a base URL and ends it with the test.
func startCutter(t *testing.T, target string, limits []int64) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{
		url:    "http://" + ln.Addr().String(),
		target: strings.TrimPrefix(target, "http://"),
		limits: limits,
		ln:     ln,
	}
	c.work.Go(c.accept)
	t.Cleanup(c.stop)
	return c
}

// stop closes the listener and every connection, and waits.
func (c *cutter) stop() {
	c.ln.Close()
	c.mu.Lock()
	c.ended = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// own takes charge of a connection, or closes it if the cutter has ended.
func (c *cutter) own(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		conn.Close()
		return
	}
	c.conns = append(c.conns, conn)
}

func (c *cutter) accept() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return // the listener is closed
		}
		c.own(conn)
		n := c.made.Add(1) - 1
		c.work.Go(func() { c.carry(conn.(*net.TCPConn), n) })
	}
}

// carry joins the n-th connection to the target, until either end closes or the limit is reached.
func (c *cutter) carry(client *net.TCPConn, n int64) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return // the client sees its connection closed
	}
	c.own(server)
	defer server.Close()
	c.work.Go(func() {
		_, _ = io.Copy(server, client) // ends with either connection
		server.Close()
	})
	if n >= int64(len(c.limits)) {
		_, _ = io.Copy(client, server) // likewise
		return
	}
	if err := copyAnswer(client, server, c.limits[n]); err == nil && n%2 == 1 {
		_ = client.SetLinger(0) // makes a reset of the Close to come
	}
}

// copyAnswer copies the head of an answer and the first limit bytes after it; of the head alone the
// first bytes where limit is negative.
func copyAnswer(to io.Writer, from io.Reader, limit int64) error {
	if limit < 0 {
		_, err := io.CopyN(to, from, -limit)
		return err
	}
	answer := bufio.NewReader(from)
	for {
		line, err := answer.ReadString('\n')
		if _, werr := io.WriteString(to, line); err != nil || werr != nil {
			return errors.Join(err, werr)
		}
		if line == "\r\n" {
			break
		}
	}
	_, err := io.CopyN(to, answer, limit)
	return err
}
