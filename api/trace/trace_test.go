package trace_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/spool-dev/spool/api/trace"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// sink is an OTLP collector that keeps what it gets.
type sink struct {
	url *url.URL

	mu     sync.Mutex
	spans  []*wire.Span
	raw    bytes.Buffer
	header http.Header
	paths  []string
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: %v", r.Header.Get("Content-Type"), err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(body)
		s.header, s.paths = r.Header, append(s.paths, r.URL.Path)
		for _, resource := range req.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				s.spans = append(s.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	s.url = rig.Parse(t, server.URL)
	return s
}

// named are the spans whose names begin with prefix, in the order of their begin.
func (s *sink) named(prefix string) []*wire.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*wire.Span
	for _, span := range s.spans {
		if strings.HasPrefix(span.Name, prefix) {
			out = append(out, span)
		}
	}
	slices.SortFunc(out, func(a, b *wire.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return out
}

func attributes(span *wire.Span) map[string]any {
	out := map[string]any{}
	for _, kv := range span.Attributes {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *common.AnyValue_BoolValue:
			out[kv.Key] = v.BoolValue
		}
	}
	return out
}

func open(t *testing.T, c trace.Config) *trace.Tracer {
	t.Helper()
	tracer, err := trace.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
	parent      = "00-" + callerTrace + "-" + callerSpan + "-01"
)

// chatBody asks for a streamed answer with words of its own.
const chatBody = `{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"the-prompt"}]}`

// answer is a whole streamed answer with an id and its usage.
func answer() []fakellm.Op {
	return fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("the-answer", " goes", " on"), 0)...)
}

// finish waits until every run has told its end, and has everything exported.
func finish(t *testing.T, g *rig.Rig, tracer *trace.Tracer) {
	t.Helper()
	g.Runs.Drain(t.Context())
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A run that was retried is a span in its caller's trace, with one below it for each attempt and reader.
func TestTrace_RunItsAttemptsAndItsReaders(t *testing.T) {
	s := newSink(t)
	tracer := open(t, trace.Config{Endpoint: s.url, Headers: map[string]string{"x-tenant": "a-tenant"}, Version: "1"})
	g := rig.New(t, rig.Options{Trace: tracer})
	g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(503, `{"error":{"message":"the-refusal"}}`)}, answer())
	a := g.Do("POST", "/openai/v1/chat/completions", chatBody, "Authorization", "Bearer the-credential",
		"traceparent", parent, "tracestate", "a=b", "baggage", "user=the-user", "X-Buffer-Operation", "op-1")
	if a.Status != 200 || a.Err != nil {
		t.Fatalf("%d %s %v", a.Status, a.Body, a.Err)
	}
	g.Await(a.RunID(), buffer.Completed)
	g.Do("GET", "/runs/"+a.RunID()+"/resume", "", "Authorization", "Bearer the-credential",
		"traceparent", "00-"+strings.Repeat("7", 32)+"-"+strings.Repeat("8", 16)+"-01")
	for _, r := range g.Fake.Requests() {
		if r.Header.Get("Traceparent")+r.Header.Get("Tracestate")+r.Header.Get("Baggage") != "" {
			t.Errorf("the caller's trace went to the provider: %v", r.Header)
		}
	}
	finish(t, g, tracer)

	runs, attempts, reads := s.named("chat gpt-x"), s.named("attempt openai"), s.named("read")
	if len(runs) != 1 || len(attempts) != 2 || len(reads) != 2 {
		t.Fatalf("%d runs, %d attempts, %d readers", len(runs), len(attempts), len(reads))
	}
	run := runs[0]
	if hex.EncodeToString(run.TraceId) != callerTrace || hex.EncodeToString(run.ParentSpanId) != callerSpan {
		t.Errorf("the run is in trace %x below %x", run.TraceId, run.ParentSpanId)
	}
	for _, below := range attempts {
		if !bytes.Equal(below.TraceId, run.TraceId) || !bytes.Equal(below.ParentSpanId, run.SpanId) {
			t.Errorf("%s is not below its run", below.Name)
		}
		if below.StartTimeUnixNano < run.StartTimeUnixNano || below.EndTimeUnixNano > run.EndTimeUnixNano {
			t.Errorf("%s is not within its run", below.Name)
		}
	}
	if hex.EncodeToString(reads[0].ParentSpanId) != callerSpan || hex.EncodeToString(reads[1].ParentSpanId) != strings.Repeat("8", 16) {
		t.Errorf("the readers are below %x and %x", reads[0].ParentSpanId, reads[1].ParentSpanId)
	}
	if len(reads[0].Links) != 1 || !bytes.Equal(reads[0].Links[0].SpanId, run.SpanId) {
		t.Errorf("the caller's reader has links %v", reads[0].Links)
	}
	common := map[string]any{
		"spool.run.id": a.RunID(), "spool.operation": "op-1", "spool.route": "openai", "gen_ai.system": "openai",
		"gen_ai.provider.name": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x",
	}
	check(t, run, common, map[string]any{
		"spool.stream": true, "spool.state": "completed", "spool.sends": int64(2), "http.response.status_code": int64(200),
		"gen_ai.response.id": "chatcmpl-fake", "gen_ai.usage.output_tokens": int64(3),
	})
	check(t, attempts[0], common, map[string]any{
		"spool.attempt": int64(1), "http.response.status_code": int64(503), "spool.attempt.action": "retry", "error.type": "transient",
	})
	check(t, attempts[1], common, map[string]any{
		"spool.attempt": int64(2), "http.response.status_code": int64(200), "spool.attempt.action": "complete", "gen_ai.usage.output_tokens": int64(3),
	})
	check(t, reads[0], map[string]any{"spool.run.id": a.RunID(), "spool.reader.caller": true})
	check(t, reads[1], map[string]any{"spool.run.id": a.RunID(), "spool.reader.caller": false})
	if run.Status.GetCode() == wire.Status_STATUS_CODE_ERROR || attempts[0].Status.GetCode() != wire.Status_STATUS_CODE_ERROR {
		t.Errorf("the run's status is %v, its first attempt's %v", run.Status, attempts[0].Status)
	}
	for _, secret := range []string{"the-credential", "the-prompt", "the-answer", "the-refusal", "the-user", "a-tenant"} {
		if bytes.Contains(s.raw.Bytes(), []byte(secret)) {
			t.Errorf("%s is in what was exported", secret)
		}
	}
	if s.header.Get("X-Tenant") != "a-tenant" || slices.ContainsFunc(s.paths, func(p string) bool { return p != "/v1/traces" }) {
		t.Errorf("exported to %v with %v", s.paths, s.header)
	}
}

func check(t *testing.T, span *wire.Span, wants ...map[string]any) {
	t.Helper()
	got := attributes(span)
	for _, want := range wants {
		for key, v := range want {
			if got[key] != v {
				t.Errorf("%s: %s is %v, want %v", span.Name, key, got[key], v)
			}
		}
	}
}

// The caller's decision about sampling is kept, and the ratio decides where there is none.
func TestTrace_Sampling(t *testing.T) {
	none, all := 0.0, 1.0
	for name, row := range map[string]struct {
		ratio  *float64
		parent string
		want   int
	}{
		"none, by the ratio":        {&none, "", 0},
		"all, by the ratio":         {&all, "", 1},
		"the caller says yes":       {&none, parent, 1},
		"the caller says no":        {&all, "00-" + callerTrace + "-" + callerSpan + "-00", 0},
		"the caller says nonsense":  {&all, "00-a-b-01", 1},
		"all, where nothing is set": {nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t)
			tracer := open(t, trace.Config{Endpoint: s.url, Ratio: row.ratio})
			g := rig.New(t, rig.Options{Trace: tracer})
			g.Await(g.Chat("traceparent", row.parent).RunID(), buffer.Completed)
			finish(t, g, tracer)
			if n := len(s.named("chat m")); n != row.want {
				t.Errorf("%d runs were exported, want %d", n, row.want)
			}
		})
	}
}

// Where it is configured, the caller's trace headers go on to the provider as they came.
func TestTrace_PassesTheHeadersOnWhereItIsTold(t *testing.T) {
	s := newSink(t)
	tracer := open(t, trace.Config{Endpoint: s.url, Pass: true})
	g := rig.New(t, rig.Options{Trace: tracer})
	g.Chat("traceparent", parent, "tracestate", "a=b")
	if h := g.Fake.Requests()[0].Header; h.Get("Traceparent") != parent || h.Get("Tracestate") != "a=b" {
		t.Errorf("the provider got %v", h)
	}
	finish(t, g, tracer)
}

// A collector that refuses everything, or is not there, changes no answer.
func TestTrace_CollectorThatFailsDisturbsNothing(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer refusing.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, at := range map[string]string{"refuses": refusing.URL, "is gone": gone.URL} {
		t.Run(name, func(t *testing.T) {
			tracer := open(t, trace.Config{Endpoint: rig.Parse(t, at)})
			g := rig.New(t, rig.Options{Trace: tracer})
			plain := rig.New(t, rig.Options{})
			a, want := g.Chat(), plain.Chat()
			if a.Status != want.Status || !bytes.Equal(a.Body, want.Body) || a.Err != nil {
				t.Errorf("%d %q %v", a.Status, a.Body, a.Err)
			}
			g.Await(a.RunID(), buffer.Completed)
			now, cancel := contextThatIsOver(t)
			defer cancel()
			if err := tracer.Close(now); err == nil {
				t.Error("nothing could be exported, and nobody says so")
			}
		})
	}
}

// contextThatIsOver leaves no time to export.
func contextThatIsOver(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}
