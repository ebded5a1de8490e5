// Package trace tells an OpenTelemetry collector what happens to runs: a span for each run, each of its
// attempts and each of its readers, with the names of OpenTelemetry's conventions for GenAI. It is a
// buffer.Observer: what a run's span says is what is stored. Spans hold no prompt, no answer, no
// credential and no caller.
//
//	caller's traceparent ─▶ Continue ─▶ ctx ─▶ RunBegun ─▶ run ─┬─ attempt 1
//	                                      │                    ├─ attempt 2
//	                                      └──▶ Joined ─▶ reader (its own traceparent, or the run's)
package trace

import (
	"context"
	"net/http"
	"sync"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/spool-dev/spool/buffer"
)

// Tracer makes the spans. It is safe for concurrent use, and none of its methods waits for a collector.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	pass     bool

	mu   sync.Mutex
	live map[ulid.ULID]trace.Span // of the runs whose end is not stored
}

// New returns a tracer that gives its spans to provider. pass lets a caller's trace headers go on to
// the model's provider, as they came.
func New(provider *sdk.TracerProvider, pass bool) *Tracer {
	return &Tracer{
		provider: provider, tracer: provider.Tracer("github.com/spool-dev/spool"), pass: pass,
		live: map[ulid.ULID]trace.Span{},
	}
}

// headers are those in which a caller's trace comes. Baggage is none of ours, and is somebody's data.
var headers = []string{"Traceparent", "Tracestate", "Baggage"}

// Continue makes what next does a part of the trace that a request comes from (W3C Trace Context).
// A header that is not well formed is none.
func (t *Tracer) Continue(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		if !t.pass {
			for _, name := range headers {
				r.Header.Del(name)
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, visitKey{}, &visit{})))
	})
}

// visitKey finds the visit in a request's context.
type visitKey struct{}

// visit is one request. It reads each run once, however often it says so.
type visit struct {
	mu   sync.Mutex
	runs map[ulid.ULID]bool
}

// first reports whether the visit comes to the run for the first time.
func (v *visit) first(run ulid.ULID) bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.runs[run] {
		return false
	}
	if v.runs == nil {
		v.runs = map[ulid.ULID]bool{}
	}
	v.runs[run] = true
	return true
}

// RunBegun implements buffer.Observer.
func (t *Tracer) RunBegun(ctx context.Context, r buffer.Run) {
	_, span := t.tracer.Start(ctx, spanName(r), trace.WithTimestamp(r.Created),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(began(r)...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[r.ID] = span
}

// AttemptEnded implements buffer.Observer.
func (t *Tracer) AttemptEnded(r buffer.Run, a buffer.Attempt) {
	_, span := t.tracer.Start(t.under(context.Background(), r.ID), "attempt "+a.Route, trace.WithTimestamp(a.Sent),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attempted(r, a)...))
	if a.Class != "" && !goodAttempt(a) {
		span.SetStatus(codes.Error, string(a.Class))
	}
	ended := a.Ended
	if ended.IsZero() {
		ended = r.Ended
	}
	span.End(trace.WithTimestamp(ended))
}

// RunEnded implements buffer.Observer.
func (t *Tracer) RunEnded(r buffer.Run) {
	t.mu.Lock()
	span := t.live[r.ID]
	delete(t.live, r.ID)
	t.mu.Unlock()
	if span == nil {
		return
	}
	span.SetAttributes(ended(r)...)
	if r.Outcome != buffer.Completed {
		span.SetStatus(codes.Error, string(r.Outcome))
	}
	if !r.Committed.IsZero() {
		span.AddEvent("first content", trace.WithTimestamp(r.Committed))
	}
	span.End(trace.WithTimestamp(r.Ended))
}

// Reused implements buffer.Observer. A repeat is seen as the reader that it is.
func (t *Tracer) Reused(buffer.Run) {}

// Joined implements buffer.Observer. A reader that brings no trace of its own is in the run's, while the
// run is live.
func (t *Tracer) Joined(ctx context.Context, run ulid.ULID, caller bool) (left func()) {
	v, _ := ctx.Value(visitKey{}).(*visit)
	if !v.first(run) {
		return func() {}
	}
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String(keyRun, run.String()), attribute.Bool(keyCaller, caller)),
	}
	if of := trace.SpanContextFromContext(t.under(context.Background(), run)); of.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: of}))
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = t.under(ctx, run)
	}
	_, span := t.tracer.Start(ctx, "read", opts...)
	return func() { span.End() }
}

// under is ctx below the span of a live run.
func (t *Tracer) under(ctx context.Context, run ulid.ULID) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := t.live[run]; span != nil {
		return trace.ContextWithSpan(ctx, span)
	}
	return ctx
}

// Close hands over what has not been exported, until ctx ends. Runs whose end could not be stored end
// here, as errors: the next start of the buffer seals them.
func (t *Tracer) Close(ctx context.Context) error {
	t.mu.Lock()
	left := t.live
	t.live = map[ulid.ULID]trace.Span{}
	t.mu.Unlock()
	for _, span := range left {
		span.SetStatus(codes.Error, "end not stored")
		span.End()
	}
	return t.provider.Shutdown(ctx)
}
