package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// The limits of the rigs of these tests.
const (
	maxChunk  = 8 << 10
	maxBytes  = 64 << 10
	maxEvents = 50
)

// broken is a provider that breaks the rules of HTTP or knows no end, and what must come of it.
type broken struct {
	name   string
	answer []fakellm.Op
	state  buffer.State
	reason buffer.Reason
	limit  string // the setting whose limit the answer goes over
	want   []byte // what the caller gets where the run is completed; nil is the whole answer of chat
}

// shortEvents are a short answer; shortChat is all of it.
var (
	shortEvents = fakellm.Chat("a ", "b ")
	shortChat   = bytes.Join(shortEvents, nil)
)

// verbatim is an answer that is written byte by byte as it stands here.
func verbatim(parts ...string) []fakellm.Op {
	var ops []fakellm.Op
	for _, p := range parts {
		ops = append(ops, fakellm.Data(p))
	}
	return ops
}

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

// inChunk is b as one chunk of HTTP/1.1.
func inChunk(b []byte) string { return fmt.Sprintf("%x\r\n%s\r\n", len(b), b) }

// zipped is b in gzip.
func zipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b) // memory does not fail
	_ = w.Close()
	return z.Bytes()
}

// encoded is a head that announces an encoding.
func encoded(name string) fakellm.Op {
	op := fakellm.Head("text/event-stream")
	op.Headers["Content-Encoding"] = []string{name}
	return op
}

func brokenProviders() []broken {
	begun := inChunk(bytes.Join(shortEvents[:2], nil))
	token := string(shortEvents[1])
	long := "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", maxChunk/2) + "\"}}]}\n\n"
	const unknown = buffer.EOFWithoutEnd
	return []broken{
		// What is odd, and right.
		{name: "one byte at a time", answer: append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Cut(shortChat, 1), fakellm.Done())...), state: buffer.Completed},
		{name: "informational answers first", answer: verbatim("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
			okHead+"Transfer-Encoding: chunked\r\n\r\n"+inChunk(shortChat)+"0\r\n\r\n"), state: buffer.Completed},
		{name: "trailers", answer: verbatim(okHead + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + inChunk(shortChat) + "0\r\nX-Sum: 1\r\n\r\n"), state: buffer.Completed},
		{name: "a length beside chunks", answer: verbatim(okHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + inChunk(shortChat) + "0\r\n\r\n"), state: buffer.Completed},
		{name: "one length twice", answer: verbatim(fmt.Sprintf("%sContent-Length: %d\r\nContent-Length: %[2]d\r\n\r\n%s", okHead, len(shortChat), shortChat)), state: buffer.Completed},
		{name: "more than the length", answer: verbatim(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\n\r\nmore", okHead, len(shortChat), shortChat)), state: buffer.Completed},
		{name: "NULs", answer: fakellm.Stream("text/event-stream", fakellm.Data("data: {\"a\":\"\x00\"}\n\n"), fakellm.Bytes(shortChat)), state: buffer.Completed,
			want: append([]byte("data: {\"a\":\"\x00\"}\n\n"), shortChat...)},
		{name: "gzip", answer: []fakellm.Op{encoded("gzip"), fakellm.Bytes(zipped(shortChat)), fakellm.Done()}, state: buffer.Completed},

		// What breaks the rules.
		{name: "two lengths", answer: verbatim(okHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\ndata: "), state: buffer.Failed, reason: buffer.Reset},
		{name: "a length that is none", answer: verbatim(okHead + "Content-Length: +5\r\n\r\ndata: "), state: buffer.Failed, reason: buffer.Reset},
		{name: "a coding that is none", answer: verbatim(okHead + "Transfer-Encoding: chunked, nonsense\r\n\r\n" + begun), state: buffer.Failed, reason: buffer.Reset},
		{name: "no HTTP at all", answer: append(verbatim("REFUSED_STREAM TLS handshake timeout\r\n\r\n"), fakellm.Fin()), state: buffer.Failed, reason: buffer.Reset},
		{name: "a chunk that is none", answer: append(verbatim(okHead+"Transfer-Encoding: chunked\r\n\r\n"+begun+"zz\r\nnonsense\r\n"), fakellm.Fin()), state: buffer.Interrupted, reason: buffer.Reset},
		{name: "a chunk without its end", answer: append(verbatim(okHead+"Transfer-Encoding: chunked\r\n\r\n"+begun+"5\r\nabcdefgh\r\n"), fakellm.Fin()), state: buffer.Interrupted, reason: buffer.Reset},
		{name: "204 with a body", answer: append(verbatim("HTTP/1.1 204 No Content\r\nContent-Type: text/event-stream\r\n\r\n"+string(shortChat)), fakellm.Fin()), state: buffer.Failed, reason: unknown},
		{name: "304 with a body", answer: append(verbatim("HTTP/1.1 304 Not Modified\r\n\r\n"+string(shortChat)), fakellm.Fin()), state: buffer.Failed, reason: buffer.Refused},
		{name: "gzip that is announced as none", answer: []fakellm.Op{encoded("identity"), fakellm.Bytes(zipped(shortChat)), fakellm.Done()}, state: buffer.Failed, reason: unknown},
		{name: "plain text that is announced as gzip", answer: []fakellm.Op{encoded("gzip"), fakellm.Bytes(shortChat), fakellm.Done()}, state: buffer.Failed, reason: buffer.Reset},
		{name: "half of a gzip", answer: []fakellm.Op{encoded("gzip"), fakellm.Bytes(zipped(shortChat)[:40]), fakellm.Done()}, state: buffer.Failed, reason: buffer.Reset},

		// What knows no end, each with the limit that ends it.
		{name: "endless headers", answer: []fakellm.Op{fakellm.Data("HTTP/1.1 200 OK\r\n"), fakellm.Repeat(1<<20, 0, "X-Header: "+strings.Repeat("x", 1000)+"\r\n")},
			state: buffer.Failed, reason: buffer.Limit, limit: "limits.provider_headers"},
		{name: "endless informational answers", answer: []fakellm.Op{fakellm.Repeat(1<<20, 0, "HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 1000)+"\r\n\r\n")},
			state: buffer.Failed, reason: buffer.Limit, limit: "limits.provider_headers"},
		{name: "an event without end", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Repeat(1<<20, 0, "data: "+strings.Repeat("x", 1000))},
			state: buffer.Failed, reason: buffer.Limit, limit: "limits.chunk"},
		{name: "an event without end after content", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Data(token), fakellm.Repeat(1<<20, 0, "data: "+strings.Repeat("x", 1000))},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.chunk"},
		{name: "events without end", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Repeat(1<<20, 0, token)},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.events"},
		{name: "tiny events without end", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Data(token), fakellm.Repeat(1<<20, 0, strings.Repeat(":\n\n", 300))},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.events"},
		{name: "bytes without end", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Repeat(1<<20, 0, long)},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.run"},
		{name: "all at once, over the limit", answer: fakellm.Stream("text/event-stream", fakellm.Data(strings.Repeat(long, 20)), fakellm.Bytes(shortChat)),
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.run"},
		{name: "a gzip bomb of one event", answer: []fakellm.Op{encoded("gzip"), fakellm.Bytes(zipped(make([]byte, 16<<20))), fakellm.Done()},
			state: buffer.Failed, reason: buffer.Limit, limit: "limits.chunk"},
		{name: "a gzip bomb of many", answer: []fakellm.Op{encoded("x-gzip"), fakellm.Bytes(zipped(bytes.Repeat([]byte(long), 1000))), fakellm.Done()},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "limits.run"},
		{name: "comments without end", answer: []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Data(token), fakellm.Repeat(1<<20, 50*time.Millisecond, ":")},
			state: buffer.Interrupted, reason: buffer.Limit, limit: "clocks.total"},
	}
}

// Whatever a provider does, its run ends with a reason, in the log as to its caller, at once as when
// it is read again; and each request has its row.
func TestBroken_ProvidersComeToAnEnd(t *testing.T) {
	t.Parallel()
	routes := func(fake string) map[string]provider.Route {
		return map[string]provider.Route{"openai": {
			Name: "openai", BaseURL: rig.Parse(t, fake+"/primary"), NoRetry: true, Clocks: provider.Clocks{Total: 2 * time.Second},
		}}
	}
	g := rig.New(t, rig.Options{Routes: routes, Runs: buffer.Config{MaxChunk: maxChunk, MaxRun: maxBytes, MaxEvents: maxEvents}})
	for _, row := range brokenProviders() {
		t.Run(row.name, func(t *testing.T) {
			g.Fake.Script("primary", row.answer)
			before := g.Fake.Count("primary")
			const asks = `{"model":%q,"stream":true,"messages":[]}` // a model of its own: none is known to be down
			body := fmt.Sprintf(asks, row.name)
			a := g.Do("POST", "/openai/v1/chat/completions", body, "Idempotency-Key", row.name, "X-Buffer-Budget", "attempts=1")
			run := g.Await(a.RunID(), row.state, buffer.Completed, buffer.Failed, buffer.Interrupted)
			if run.State != row.state || run.Reason != row.reason || run.Limit() != row.limit {
				t.Fatalf("the run is %s, reason %q, limit %q; want %s, %q, %q", run.State, run.Reason, run.Limit(), row.state, row.reason, row.limit)
			}
			wantBroken(t, row, run, a)
			if run.Bytes > maxBytes || run.Head > maxEvents {
				t.Errorf("%d bytes in %d chunks are stored", run.Bytes, run.Head)
			}
			again := g.Do("POST", "/openai/v1/chat/completions", body, "Idempotency-Key", row.name, "X-Buffer-Budget", "attempts=1")
			if again.RunID() != a.RunID() || again.Status != a.Status || !bytes.Equal(again.Body, a.Body) {
				t.Errorf("read again it is %d, %d bytes; it was %d, %d bytes", again.Status, len(again.Body), a.Status, len(a.Body))
			}
			wantOneRow(t, row, run)
			if n := g.Fake.Count("primary") - before; n != 1 {
				t.Errorf("%d provider calls, want 1", n)
			}
		})
	}
}

// wantBroken checks what the caller heard.
func wantBroken(t *testing.T, row broken, run buffer.Run, a rig.Answer) {
	t.Helper()
	switch row.state {
	case buffer.Completed:
		want := row.want
		if want == nil {
			want = shortChat
		}
		if a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, want) {
			t.Errorf("%d %q %v", a.Status, a.Body, a.Err)
		}
	case buffer.Failed:
		if a.Status != 502 || a.Err != nil || !bytes.Contains(a.Body, []byte("error")) || !bytes.Contains(a.Body, []byte(row.limit)) {
			t.Errorf("%d %.200q %v; want 502 with %q", a.Status, a.Body, a.Err, row.limit)
		}
	default:
		told := a.Body[min(run.Bytes, int64(len(a.Body))):]
		if a.Status != 200 || a.Err == nil || !bytes.Contains(told, []byte(string(row.reason))) || !bytes.Contains(told, []byte(row.limit)) {
			t.Errorf("%d, told %q, %v; want reason %s, limit %q and an abort", a.Status, told, a.Err, row.reason, row.limit)
		}
	}
}

func wantOneRow(t *testing.T, row broken, run buffer.Run) {
	t.Helper()
	billed := policy.BilledUnknown
	switch {
	case row.state != buffer.Failed:
		billed = policy.BilledYes
	case row.reason == buffer.Refused:
		billed = policy.BilledNo
	}
	if len(run.Attempts) != 1 || run.Attempts[0].Billed != billed || run.Attempts[0].Ended.IsZero() || !strings.Contains(run.Attempts[0].Why, row.limit) {
		t.Errorf("ledger %+v; want one row, billed %s, that names %q", run.Attempts, billed, row.limit)
	}
}
