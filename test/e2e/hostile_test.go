package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// said writes bytes to the buffer's port and leaves the connection open.
func said(t *testing.T, g *rig.Rig, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // most often for the second time
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// request is a head that announces a body of so many bytes.
func request(method, path string, length int, headers ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: spool\r\nAuthorization: Bearer k\r\nContent-Length: %d\r\n%s\r\n",
		method, path, length, strings.Join(append(headers, ""), "\r\n"))
}

// A body that does not come is waited for no longer than its limit, whether its handler reads it or
// not; the caller hears which limit that was, and nothing was bought.
func TestHostile_BodiesThatDoNotCome(t *testing.T) {
	g := rig.New(t, rig.Options{Limits: api.Limits{BodyTime: 50 * time.Millisecond, BodyGap: 50 * time.Millisecond}})
	const none = "01JZZZZZZZ0000000000000009"
	for _, row := range []struct{ path, answer string }{
		{"/openai/v1/chat/completions", "408 limits.body_time"},
		{"/anthropic/v1/messages", "408 limits.body_time"},
		{"/openai/v1/files", "408 limits.body_gap"},
		{"/openai/v1/responses/resp_1/cancel", "408 limits.body_gap"},
		{"/runs/" + none + "/token", "408 limits.body_time"},
		{"/runs/" + none + "/cancel", "404 not_found"}, // what is not read is not needed either
		{"/runs/" + none + "/ack", "404 not_found"},
		{"/nowhere", "404 not_found"},
		{"/healthz", "405 bad_method"},
	} {
		t.Run(row.path, func(t *testing.T) {
			t.Parallel()
			conn := said(t, g, request("POST", row.path, 1000)+`{"model":`)
			heard, _ := io.ReadAll(conn) // ends when the connection is closed, cleanly or not
			status, text, _ := strings.Cut(row.answer, " ")
			if !strings.HasPrefix(string(heard), "HTTP/1.1 "+status) || !strings.Contains(string(heard), text) {
				t.Errorf("heard %q, want %s", heard, row.answer)
			}
		})
	}
	t.Cleanup(func() { // after the rows
		if n := g.Fake.Count(""); n != 0 {
			t.Errorf("%d requests reached the provider whole", n)
		}
	})
}

// An upload may take as long as it needs while it moves.
func TestHostile_UploadThatTricklesGoesThrough(t *testing.T) {
	g := rig.New(t, rig.Options{Limits: api.Limits{BodyTime: time.Millisecond, BodyGap: time.Minute}})
	near, far := io.Pipe()
	go func() {
		for range 20 {
			_, _ = far.Write([]byte("byte"))
		}
		_ = far.Close()
	}()
	req := g.Request("POST", "/openai/v1/files", "")
	req.Body, req.ContentLength = near, -1
	resp, err := g.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sent := last(t, g); string(sent.Body) != strings.Repeat("byte", 20) {
		t.Errorf("%q arrived", sent.Body)
	}
}

// A caller that leaves in the middle of its body has made no call.
func TestHostile_CallerThatLeavesWhileItSpeaks(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	for range 8 {
		conn := said(t, g, request("POST", "/openai/v1/chat/completions", 1000)+`{"model":"m"`)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if a := g.Chat(); a.Status != 200 {
		t.Errorf("the next caller: %d", a.Status)
	}
	if n := g.Fake.Count(""); n != 1 {
		t.Errorf("%d provider calls, want the one that was made whole", n)
	}
}

// Who takes nothing of an answer that passes through holds its provider no longer than one write may
// take.
func TestHostile_PassThroughIsNotHeldByItsReader(t *testing.T) {
	for _, two := range []bool{false, true} {
		g := rig.New(t, rig.Options{Plain: true, HTTP2: two, Limits: api.Limits{Write: 100 * time.Millisecond}})
		g.Fake.Script("primary", []fakellm.Op{fakellm.Head("application/octet-stream"), fakellm.Repeat(1<<20, 0, strings.Repeat("x", 64<<10))})
		resp := g.Open("GET", "/openai/v1/files/f/content", "")
		awaitProvider(t, g, "its answer goes on", func(r []fakellm.Request) bool { return !r[0].Ended.IsZero() })
		resp.Body.Close()
	}
}

// A provider that has answered before it has heard the call out is heard, and the call is over.
func TestHostile_ProviderThatAnswersBeforeItHasHeard(t *testing.T) {
	const refusal = `{"error":{"message":"too long","type":"invalid_request_error"}}`
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_, _ = io.ReadFull(conn, make([]byte, 100))
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
			_, _ = io.Copy(io.Discard, conn) // until the buffer lets it go; a reset would take the answer along
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	g := rig.New(t, rig.Options{Routes: func(string) map[string]provider.Route {
		return map[string]provider.Route{"openai": {Name: "openai", BaseURL: rig.Parse(t, "http://"+l.Addr().String())}}
	}})
	a := g.Do("POST", "/openai/v1/chat/completions", `{"model":"m","stream":true,"x":"`+strings.Repeat("x", 8<<20)+`"}`)
	if a.Status != 413 || string(a.Body) != refusal || asked.Load() != 1 {
		t.Errorf("%d %s after %d calls, want the provider's own refusal after one", a.Status, a.Body, asked.Load())
	}
}

// Requests that two peers could take for different ones are refused, or are one request to both sides.
func TestHostile_RequestsAreNotSmuggled(t *testing.T) {
	const (
		inner = "GET /openai/v1/smuggled HTTP/1.1\r\nHost: spool\r\nX-A: "
		head  = "POST /openai/v1/files HTTP/1.1\r\nHost: spool\r\nAuthorization: Bearer k\r\nConnection: close\r\n"
	)
	for name, text := range map[string]string{
		"two lengths":         head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef" + inner,
		"a list of lengths":   head + "Content-Length: 5, 6\r\n\r\nabcdef" + inner,
		"a sign":              head + "Content-Length: +5\r\n\r\nabcde" + inner,
		"a hexadecimal":       head + "Content-Length: 0x5\r\n\r\nabcde" + inner,
		"an unknown coding":   head + "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\nabcde" + inner,
		"two codings":         head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + inner,
		"a coding twice":      head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"a space in a name":   head + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inner,
		"a folded header":     head + "X-A: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + inner,
		"a bare CR":           head + "X-A: a\rContent-Length: 5\r\n\r\nabcde" + inner,
		"a NUL":               head + "X-A: a\x00b\r\nContent-Length: 5\r\n\r\nabcde" + inner,
		"a chunk that lies":   head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n0\r\n\r\n" + inner,
		"a chunk size's sign": head + "Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n0\r\n\r\n" + inner,
		"two hosts":           strings.Replace(head, "Host: spool\r\n", "Host: spool\r\nHost: elsewhere\r\n", 1) + "Content-Length: 0\r\n\r\n" + inner,
		"no host":             strings.Replace(head, "Host: spool\r\n", "", 1) + "Content-Length: 0\r\n\r\n" + inner,
	} {
		t.Run(name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Plain: true})
			conn := said(t, g, text)
			_ = conn.(*net.TCPConn).CloseWrite() // it may be closed by now
			heard, _ := io.ReadAll(conn)         // ends when the connection is closed, cleanly or not
			if bytes.Count(heard, []byte("HTTP/1.1 ")) != 1 {
				t.Errorf("heard %q, want one answer", heard)
			}
			for _, r := range g.Fake.Requests() {
				if strings.Contains(r.Target, "smuggled") {
					t.Errorf("the provider was asked for %s", r.Target)
				}
			}
		})
	}
}

// What looks like a request in a body is a body, with its length, on the way to the provider.
func TestHostile_BodiesAreOneRequestToTheProvider(t *testing.T) {
	g := rig.New(t, rig.Options{})
	body := rig.ChatBody + "\r\n0\r\n\r\nPOST /smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/files"} {
		for _, length := range []int64{int64(len(body)), -1} {
			before := g.Fake.Count("")
			req := g.Request("POST", path, "", "Transfer-Encoding", "identity", "TE", "trailers", "Trailer", "X-A", "Expect", "100-continue")
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), length
			resp, err := g.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if sent := last(t, g); string(sent.Body) != body || g.Fake.Count("") != before+1 {
				t.Errorf("%s, length %d: %q arrived, in %d requests", path, length, sent.Body, g.Fake.Count("")-before)
			}
		}
	}
}

// Headers that Connection names are of this connection, on both sides of the buffer.
func TestHostile_HeadersOfOneConnectionStayThere(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/files"} {
		op := fakellm.JSON(400, `{"error":{"message":"x"}}`)
		op.Headers = map[string][]string{"Connection": {"x-hop, X-Buffer-Run-Id, keep-alive"}, "X-Hop": {"1"}, "Keep-Alive": {"1"}, "Proxy-Authenticate": {"Basic"}, "X-End": {"1"}}
		g.Fake.Script("primary", []fakellm.Op{op})
		a := g.Do("POST", path, rig.ChatBody, "Connection", "x-hop, x-buffer-key, close", "X-Hop", "1", "X-End", "1")
		for _, h := range []http.Header{a.Header, last(t, g).Header} {
			if h.Get("X-Hop") != "" || h.Get("Keep-Alive") != "" || h.Get("Proxy-Authenticate") != "" || h.Get("X-End") != "1" {
				t.Errorf("%s: %v went through", path, h)
			}
		}
	}
}

// Whatever a target says of a host, requests go where the configuration says.
func TestHostile_TargetsNameNoHost(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	const secret = "http://169.254.169.254/latest/meta-data"
	for _, target := range []string{
		secret, "http://elsewhere/openai/v1/models", "http://user:pw@elsewhere/openai/v1/models", "https://elsewhere:1/openai/v1/models",
		"/openai/" + secret, "/openai//169.254.169.254/latest", "/openai/@169.254.169.254/", `/openai/\169.254.169.254`, "/openai/v1/models?url=" + secret,
		"/openai:80@169.254.169.254/v1/models", "/openai%00.elsewhere/v1", "//169.254.169.254/openai/v1/models", "/openai/v1/models#@elsewhere",
	} {
		for _, host := range []string{"spool", "169.254.169.254", "elsewhere:80"} {
			conn := said(t, g, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-Host: elsewhere\r\nForwarded: host=elsewhere\r\nConnection: close\r\n\r\n", target, host))
			_, _ = io.ReadAll(conn) // what it hears is not the question
		}
	}
	if len(g.Fake.Requests()) == 0 {
		t.Fatal("the provider was not asked at all")
	}
	for _, r := range g.Fake.Requests() {
		if r.Header.Get("Host") != g.Fake.Addr() || !strings.HasPrefix(r.Target, "/primary/") || r.Header.Get("X-Forwarded-Host") != "" || r.Header.Get("Forwarded") != "" {
			t.Errorf("%s with %v", r.Target, r.Header)
		}
	}
}

// No status and no target makes the buffer follow a redirect; a run hides it, since its caller would
// send its credentials there.
func TestHostile_RedirectsGoNowhere(t *testing.T) {
	var reached atomic.Int64
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := trap.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = trap.Close(); <-served })
	g := rig.New(t, rig.Options{})
	g.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, status := range []int{300, 301, 302, 303, 307, 308, 399} {
		for _, location := range []string{"http://" + trap.Addr().String() + "/", "//" + trap.Addr().String(), "http://169.254.169.254/", "file:///etc/passwd", "/elsewhere", "\\\\elsewhere", ""} {
			op := fakellm.JSON(status, "{}")
			op.Headers = map[string][]string{"Location": {location}, "Refresh": {"0; url=" + location}}
			g.Fake.Script("primary", []fakellm.Op{op})
			if a := g.Chat(); a.Status != 502 || a.Header.Get("Location") != "/runs/"+a.RunID() || a.Header.Get("Refresh") != "" {
				t.Errorf("%d to %q: a run is %d, Location %q", status, location, a.Status, a.Header.Get("Location"))
			}
			if a := g.Do("GET", "/openai/v1/models", ""); a.Status != status || a.Header.Get("Location") != location {
				t.Errorf("%d to %q: what passes through is %d, Location %q", status, location, a.Status, a.Header.Get("Location"))
			}
		}
	}
	if n := reached.Load(); n != 0 || g.Fake.Count("elsewhere") != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
