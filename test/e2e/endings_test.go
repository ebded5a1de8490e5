package e2e

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// How an answer ends, docs/protocol.md section 3: for each dialect a stream that is cut after content
// is told in the dialect and aborted on provider routes, and aborted alone on /resume.
func TestEnding_CutAnswersAreToldAndAborted(t *testing.T) {
	const sse = "text/event-stream"
	for _, row := range []struct {
		name, path, contentType string
		events                  [][]byte
		told                    string // what the provider route adds
	}{
		{"chat", "/openai/v1/chat/completions", sse, fakellm.Chat("a ", "b ", "c "), `"type":"spool_interrupted"`},
		{"responses", "/openai/v1/responses", sse, fakellm.Responses("a ", "b ", "c "), "event: error\n"},
		{"anthropic", "/anthropic/v1/messages", sse, fakellm.Messages("a ", "b ", "c "), `"type":"api_error"`},
		{"gemini", "/gemini/v1beta/models/g:streamGenerateContent?alt=sse", sse, fakellm.GeminiSSE("a ", "b ", "c "), `"status":"UNAVAILABLE"`},
		{"gemini array", "/gemini/v1beta/models/g:streamGenerateContent", "application/json", fakellm.GeminiArray("a ", "b ", "c "), ""},
		{"ollama", "/ollama/api/chat", "application/x-ndjson", fakellm.OllamaChat("a ", "b ", "c "), `{"error":`},
		{"bedrock", "/bedrock/model/m/converse-stream", "application/vnd.amazon.eventstream", fakellm.Converse("a ", "b ", "c "), ":message-type\a\x00\texception"},
	} {
		for _, cut := range []struct {
			name   string
			op     fakellm.Op
			reason buffer.Reason
		}{{"clean end", fakellm.End(), buffer.EOFWithoutEnd}, {"no terminator", fakellm.Fin(), buffer.Reset}, {"reset", fakellm.RST(), buffer.Reset}} {
			t.Run(row.name+"/"+cut.name, func(t *testing.T) {
				g := rig.New(t, rig.Options{})
				events := row.events[:len(row.events)/2+1]
				ops := append(fakellm.Play(events, 0), cut.op)
				g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head(row.contentType)}, ops...))
				a := g.Do("POST", row.path, `{"model":"m","stream":true}`, "X-Buffer-Budget", "attempts=1")
				run := g.Await(a.RunID(), buffer.Interrupted)
				if run.Reason != cut.reason {
					t.Errorf("reason %s, want %s", run.Reason, cut.reason)
				}
				if !errors.Is(a.Err, io.ErrUnexpectedEOF) {
					t.Errorf("the answer ended with %v: it must not look whole", a.Err)
				}
				resumed := g.Do("GET", "/runs/"+a.RunID()+"/resume?from=0", "")
				if !errors.Is(resumed.Err, io.ErrUnexpectedEOF) {
					t.Errorf("/resume ended with %v: it must not look whole", resumed.Err)
				}
				if stored := bytes.Join(events, nil); !bytes.HasPrefix(stored, resumed.Body) || int64(len(resumed.Body)) != run.Bytes {
					t.Errorf("/resume gave %d bytes of the provider's %d, stored are %d", len(resumed.Body), len(stored), run.Bytes)
				}
				told := bytes.TrimPrefix(a.Body, resumed.Body)
				if len(told) == len(a.Body) && len(resumed.Body) > 0 {
					t.Fatalf("the provider route does not begin with the stored bytes")
				}
				if (row.told == "") != (len(told) == 0) || !bytes.Contains(told, []byte(row.told)) {
					t.Errorf("told %q, want %q in it", told, row.told)
				}
				if row.told != "" && (!bytes.Contains(told, []byte(a.RunID())) || !bytes.Contains(told, []byte(cut.reason))) {
					t.Errorf("told %q without the run's id or the reason", told)
				}
			})
		}
	}
}

func TestEnding_ErrorEventIsTheSameEachTime(t *testing.T) {
	g := rig.New(t, rig.Options{})
	ops := append(fakellm.Play(fakellm.Chat("a ", "b ")[:3], 0), fakellm.End())
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, ops...))
	first, again := g.Chat("Idempotency-Key", "a"), g.Chat("Idempotency-Key", "a")
	if !bytes.Equal(first.Body, again.Body) || again.Err == nil {
		t.Errorf("a replay differs:\n%s\n%s", first.Body, again.Body)
	}
}

func TestEnding_ProvidersOwnErrorIsItsLastWord(t *testing.T) {
	g := rig.New(t, rig.Options{})
	events := fakellm.Messages("a ", "b ")[:4]
	events = append(events, []byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(events, 0), fakellm.End())...))
	a := g.Do("POST", "/anthropic/v1/messages", `{"model":"m","stream":true}`)
	run := g.Await(a.RunID(), buffer.Interrupted)
	if run.Reason != buffer.ProviderError {
		t.Errorf("reason %s, want provider_error", run.Reason)
	}
	if a.Err != nil || !bytes.Equal(a.Body, bytes.Join(events, nil)) {
		t.Errorf("the provider route: %v, %d bytes; want the provider's own and a clean end", a.Err, len(a.Body))
	}
	if r := g.Do("GET", "/runs/"+a.RunID()+"/resume", ""); r.Err == nil {
		t.Error("/resume ended cleanly")
	}
}

func TestEnding_RefusalIsReplayedAsItCame(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const body = `{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}`
	refusal := fakellm.JSON(401, body)
	refusal.Headers = map[string][]string{"x-request-id": {"req_1"}, "set-cookie": {"a=b"}}
	g.Fake.Script("primary", []fakellm.Op{refusal})
	for _, a := range []rig.Answer{g.Chat("Idempotency-Key", "a"), g.Chat("Idempotency-Key", "a")} {
		if a.Status != 401 || string(a.Body) != body || a.Err != nil {
			t.Errorf("%d %q %v, want the provider's 401", a.Status, a.Body, a.Err)
		}
		if a.Header.Get("X-Request-Id") != "req_1" || a.Header.Get("Set-Cookie") != "" || a.Header.Get("X-Buffer-Status") != "failed" {
			t.Errorf("headers: %v", a.Header)
		}
		r := g.Do("GET", "/runs/"+a.RunID()+"/resume", "")
		if r.Status != 200 || string(r.Body) != body || r.Err != nil || r.Header.Get("X-Buffer-Status") != "failed" {
			t.Errorf("/resume: %d %q %v", r.Status, r.Body, r.Err)
		}
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestEnding_BrokenTailIsGivenOnlyWhenAskedFor(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const half = `data: {"choices":[{"delta":{"cont`
	ops := append(fakellm.Play(fakellm.Chat("a ", "b ")[:3], 0), fakellm.Data(half), fakellm.End())
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, ops...))
	a := g.Chat()
	if strings.Contains(string(a.Body), half) {
		t.Error("the broken tail is in the answer: the error event is glued to it")
	}
	run := g.Await(a.RunID(), buffer.Interrupted)
	if string(run.Partial) != half || run.Head != 3 {
		t.Errorf("partial %q, head %d", run.Partial, run.Head)
	}
	if r := g.Do("GET", "/runs/"+a.RunID()+"/resume?partial=1", ""); !strings.HasSuffix(string(r.Body), half) {
		t.Errorf("partial=1 gave %q", r.Body)
	}
	if r := g.Do("GET", "/runs/"+a.RunID()+"/resume", ""); strings.Contains(string(r.Body), half) || int64(len(r.Body)) != run.Bytes {
		t.Errorf("/resume gave the broken tail unasked")
	}
}

func TestEnding_LastEventWithoutBlankLineCounts(t *testing.T) {
	g := rig.New(t, rig.Options{})
	body := strings.TrimSuffix(string(bytes.Join(fakellm.Chat("a "), nil)), "\n\n")
	g.Fake.Script("primary", []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Data(body), fakellm.End()})
	a := g.Chat()
	if a.Err != nil || string(a.Body) != body {
		t.Errorf("%v, %d bytes, want %d", a.Err, len(a.Body), len(body))
	}
	g.Await(a.RunID(), buffer.Completed)
}

func TestEnding_NobodyCanReachTheProvider(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Fake.Close()
	a := g.Do("POST", "/anthropic/v1/messages", `{"model":"m","stream":true}`, "X-Buffer-Budget", "attempts=1")
	if a.Status != 502 || !strings.Contains(string(a.Body), `"type":"error"`) || !strings.Contains(string(a.Body), "upstream_failed") {
		t.Errorf("%d %s, want 502 upstream_failed in Anthropic's shape", a.Status, a.Body)
	}
}

// An event without its blank line that parses is a chunk; the error event after it stays one of its own.
func TestEnding_ErrorEventIsNotGluedToAnUnfinishedOne(t *testing.T) {
	for _, tail := range []string{"", "\n"} {
		g := rig.New(t, rig.Options{})
		events := fakellm.Chat("a ", "b ")[:3]
		last := strings.TrimSuffix(string(events[2]), "\n\n") + tail
		g.Fake.Script("primary", []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Bytes(events[0]), fakellm.Bytes(events[1]), fakellm.Data(last), fakellm.End()})
		a := g.Chat()
		run := g.Await(a.RunID(), buffer.Interrupted)
		if run.Head != 3 {
			t.Errorf("%d chunks, want the unfinished one too", run.Head)
		}
		if !strings.Contains(string(a.Body), "}\n\ndata: {\"error\"") {
			t.Errorf("after %q the error event is not one of its own: %q", tail, a.Body[len(a.Body)-300:])
		}
	}
}
