package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// front serves an empty answer with the limits, and gives the address.
func front(t *testing.T, l limitSettings) string {
	t.Helper()
	at, err := listen(nil, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), l, zap.NewNop())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(limited(at, l.Connections)) }() // until it is closed
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return at.Addr().String()
}

func dial(t *testing.T, address, say string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // most often for the second time
	if _, err := io.WriteString(c, say); err != nil {
		t.Fatal(err)
	}
	return c
}

const whole = "GET / HTTP/1.1\r\nHost: spool\r\n\r\n"

// A peer that does not get on with its request is let go. What it hears is up to net/http.
func TestEdge_SlowHeadersAreLetGo(t *testing.T) {
	address := front(t, limitSettings{Headers: 20 * time.Millisecond, Idle: 20 * time.Millisecond})
	for name, say := range map[string]string{
		"nothing":        "",
		"half a line":    "GET / HT",
		"half a header":  "GET / HTTP/1.1\r\nHost: spool\r\nX-Slow: ",
		"after a header": "GET / HTTP/1.1\r\nHost: spool\r\n",
		"after a whole":  whole,
		"half of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _ = io.ReadAll(dial(t, address, say)) // ends when it is let go, cleanly or not
		})
	}
}

func TestEdge_HeadersOverTheLimitAreRefused(t *testing.T) {
	address := front(t, limitSettings{HeaderBytes: 4 << 10})
	c := dial(t, address, fmt.Sprintf("GET / HTTP/1.1\r\nHost: spool\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 10<<10)))
	if answer, err := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
		t.Errorf("%q %v, want 431", answer, err)
	}
}

// A connection over the limit waits until there is room, and is served then.
func TestEdge_ConnectionOverTheLimitWaits(t *testing.T) {
	address := front(t, limitSettings{Connections: 1})
	first := dial(t, address, whole)
	if n, err := first.Read(make([]byte, 1)); n != 1 {
		t.Fatal("the first is not served:", err)
	}
	second := dial(t, address, whole)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 1)); n != 1 {
		t.Error("the second is not served when there is room:", err)
	}
}
