package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// defaultHeaderBytes bounds what a provider may send before its body, informational answers included.
const defaultHeaderBytes = 1 << 20

// Client sends requests to providers. Its transport never sends one twice, whatever its headers say:
// requests carry no GetBody, and a body that cannot be rewound.
type Client struct {
	transport http.RoundTripper
}

// NewClient returns a client whose dials and TLS handshakes take at most connect each, and which reads
// at most headers bytes before a body. 0 is the default of either.
func NewClient(connect time.Duration, headers int64) *Client {
	if connect <= 0 {
		connect = defaultConnect
	}
	if headers <= 0 {
		headers = defaultHeaderBytes
	}
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}
	return &Client{transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    connect,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the bytes are the provider's; gzip would be undone behind our back
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: headers,
	}}
}

// NewClientOver returns a client that sends through rt, which must not repeat requests.
func NewClientOver(rt http.RoundTripper) *Client { return &Client{transport: rt} }

// Transport is the client's connection pool, for calls that pass through without becoming runs.
func (c *Client) Transport() http.RoundTripper { return c.transport }

// CloseIdle closes the pooled connections that no request uses.
func (c *Client) CloseIdle() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Send is one request as the caller made it, less what steers the buffer.
type Send struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
}

// Wire watches one request on its way. Its methods may be called while the request runs.
type Wire struct {
	reused  atomic.Bool
	written atomic.Int64
	dialing atomic.Int64  // unix nanoseconds at which the present step towards a connection began
	got     atomic.Bool   // there is a connection
	sent    atomic.Int64  // unix nanoseconds at which the request was written whole; 0 before
	last    atomic.Int64  // unix nanoseconds of the last byte that came
	wrote   chan struct{} // closed when sent is set
	once    sync.Once
}

// NewWire returns a Wire that has seen nothing yet.
func NewWire() *Wire { return &Wire{wrote: make(chan struct{})} }

// Wrote is closed when the request has been written whole.
func (w *Wire) Wrote() <-chan struct{} { return w.wrote }

// Reused reports whether the connection had carried a request before.
func (w *Wire) Reused() bool { return w.reused.Load() }

// Written is how many bytes of the request's body left.
func (w *Wire) Written() int64 { return w.written.Load() }

// Connecting is when the present step towards a connection began, dial or TLS, and whether there is
// none yet.
func (w *Wire) Connecting() (time.Time, bool) {
	n := w.dialing.Load()
	return time.Unix(0, n), n != 0 && !w.got.Load()
}

// Sent is when the request had been written whole, and whether it has.
func (w *Wire) Sent() (time.Time, bool) {
	n := w.sent.Load()
	return time.Unix(0, n), n != 0
}

// LastByte is when the last byte of the answer came; zero before the first.
func (w *Wire) LastByte() time.Time {
	if n := w.last.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Answer is a provider's response whose body has not been read, and must be closed.
type Answer struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
	// ProvesEnd reports whether a clean EOF of Body proves that all of it arrived: a length, a
	// chunked terminator, END_STREAM. A body that is delimited by the close of its connection proves
	// nothing.
	ProvesEnd bool
	Received  time.Time // when the head came
}

// Open sends one request and returns the answer's head. The request and its body live until ctx
// ends. It follows no redirect.
func (c *Client) Open(ctx context.Context, s Send, w *Wire) (*Answer, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { w.dialing.Store(time.Now().UnixNano()) },
		TLSHandshakeStart: func() { w.dialing.Store(time.Now().UnixNano()) },
		GotConn: func(i httptrace.GotConnInfo) {
			w.reused.Store(i.Reused)
			w.got.Store(true)
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				w.once.Do(func() { w.sent.Store(time.Now().UnixNano()); close(w.wrote) })
			}
		},
	})
	req, err := http.NewRequestWithContext(ctx, s.Method, s.URL.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = s.Header
	// An empty body is given too: net/http sends a request without one again as it likes.
	req.Body = &counted{r: bytes.NewReader(s.Body), n: &w.written}
	req.ContentLength = int64(len(s.Body))
	req.GetBody = nil
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	delimitedByClose := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.ProtoMajor < 2
	return &Answer{
		Status:    resp.StatusCode,
		Header:    resp.Header,
		Body:      plainBody(resp.Header, &stamped{ReadCloser: resp.Body, w: w}),
		ProvesEnd: !delimitedByClose,
		Received:  time.Now(),
	}, nil
}

// counted counts the bytes that are read from a request's body, and lets go of a body that was read to its
// end: the request lives as long as its answer. It is not a type that net/http knows, so the body cannot be
// rewound and sent again.
type counted struct {
	r *bytes.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	if err == io.EOF {
		c.r.Reset(nil)
	}
	return n, err
}

func (*counted) Close() error { return nil }

// stamped notes when bytes come.
type stamped struct {
	io.ReadCloser
	w *Wire
}

func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 {
		s.w.last.Store(time.Now().UnixNano())
	}
	return n, err
}
