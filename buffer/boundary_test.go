package buffer_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The first content is the boundary: before it a failure can be hidden and nothing is shown, after it
// nothing is sent again.

// routesTo scripts n routes that refuse before the one that answers, and returns a call whose
// fallbacks are in that order.
func (r *rig) routesTo(n int, last []fakellm.Op) buffer.Call {
	c := r.call()
	c.Run.Budget.Attempts = n + 1
	c.Route.NoRetry = true
	names := []string{"primary", "second", "third"}
	for i, name := range names[:n+1] {
		r.fake.Script(name, []fakellm.Op{refusal(503)})
		if i > 0 {
			f := r.approved(name)
			f.Route.NoRetry = true
			c.Route.Fallbacks = append(c.Route.Fallbacks, f)
		}
	}
	r.fake.Script(names[n], last)
	return c
}

func TestBoundary_NothingIsVisibleBeforeContent(t *testing.T) {
	preamble := [][]byte{role, comment, []byte("data: {\"type\":\"keepalive\"}\n\n"), role}
	for n, name := range []string{"primary", "fallback", "fallback of the fallback"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				steps := append(fakellm.Play(preamble, time.Second), fakellm.Sleep(time.Second), fakellm.Bytes(token), fakellm.Sleep(time.Second), fakellm.Bytes(done), fakellm.Done())
				id := r.start(r.routesTo(n, answer(steps...)))

				time.Sleep(3500 * time.Millisecond) // all of the preamble is there
				synctest.Wait()
				run := r.get(id)
				if run.State != buffer.Idle || run.Head != 0 || run.Bytes != 0 || run.Status != 0 || run.Header != nil || run.Framing != "" || run.ProviderID != "" || !run.Committed.IsZero() {
					r.Errorf("something is visible before content: %+v", run)
				}
				if len(run.Attempts) != n+1 || !run.Attempts[n].Ended.IsZero() {
					r.Errorf("ledger: %+v", run.Attempts)
				}
				if r.runs.Phase(id) != "waiting_for_content" {
					r.Errorf("phase %q", r.runs.Phase(id))
				}

				time.Sleep(time.Second)
				synctest.Wait()
				run = r.get(id)
				if run.State != buffer.Streaming || run.Head != 5 || run.Status != 200 || run.Header.Get("Content-Type") != eventStream || run.Framing != frame.SSE {
					r.Errorf("after the first content: %+v", run)
				}
				if got := run.Committed.Sub(run.Created); got != 4*time.Second {
					r.Errorf("committed after %s", got)
				}
				r.wantBytes(run, append(preamble, token)...)

				run = r.ended(id)
				r.wantState(run, buffer.Completed, "")
				if a := run.Attempts[n]; a.PreambleBytes != int64(len(bytes.Join(preamble, nil))) || a.ContentBytes != int64(len(token)+len(done)) {
					r.Errorf("preamble %d, content %d bytes", a.PreambleBytes, a.ContentBytes)
				}
				r.wantSends(n + 1)
			})
		})
	}
}

// A preamble without end is not held for ever: beyond its bounds it is stored and shown, and then
// that is the boundary.
func TestBoundary_PreambleIsHeldWithinBounds(t *testing.T) {
	large := append(append([]byte(": "), bytes.Repeat([]byte("x"), 64<<10-4)...), "\n\n"...) // 64 KiB
	for _, row := range []struct {
		name   string
		chunk  []byte
		n      int
		shown  bool
		ending buffer.State
	}{
		{"64 chunks", comment, 64, false, buffer.Failed},
		{"65 chunks", comment, 65, true, buffer.Interrupted},
		{"256 KiB", large, 4, false, buffer.Failed},
		{"over 256 KiB", large, 5, true, buffer.Interrupted},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.fake.Script("primary", answer(beats(row.n, time.Millisecond, row.chunk), fakellm.Sleep(time.Second), fakellm.RST()))
				c := r.call()
				c.Run.Budget.Attempts = 1
				id := r.start(c)
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if run := r.get(id); (run.Head == int64(row.n)) != row.shown || (run.Head == 0) == row.shown || (run.State == buffer.Streaming) != row.shown {
					r.Errorf("run is %s with head %d", run.State, run.Head)
				}
				run := r.ended(id)
				r.wantState(run, row.ending, buffer.Reset)
				r.wantSends(1)
			})
		})
	}
}

// What an attempt that failed had sent before its content is nowhere to be seen.
func TestBoundary_FailureInThePreambleLeavesNoTrace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			answer []fakellm.Op
			class  policy.Class
			sent   policy.Sent
			billed policy.Billed
		}{
			{"reset", answer(fakellm.Bytes(role), fakellm.RST()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"cut", answer(fakellm.Bytes(role), fakellm.Fin()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"clean end without proof", answer(fakellm.Bytes(role), fakellm.End()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"half an event", answer(fakellm.Bytes(role), fakellm.Bytes(token[:20]), fakellm.RST()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"an error in the stream", answer(fakellm.Bytes(role), fakellm.Data("data: {\"error\":{\"code\":\"server_error\",\"message\":\"no\"}}\n\n"), fakellm.Done()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"a rate limit in the stream", answer(fakellm.Bytes(role), fakellm.Data("data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"no\"}}\n\n"), fakellm.Done()), policy.Rate, policy.WasRefused, policy.BilledNo},
			{"nothing", answer(fakellm.End()), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"closed without an answer", []fakellm.Op{fakellm.Fin()}, policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"a gateway's 502", []fakellm.Op{refusal(502, "X-Request-Id", "first")}, policy.Transient, policy.SentUnknown, policy.BilledUnknown},
			{"stalled", answer(fakellm.Bytes(role), hang), policy.Transient, policy.SentUnknown, policy.BilledUnknown},
		} {
			r.begin(row.name)
			good := fakellm.Chat("good ")
			head := fakellm.Head(eventStream)
			head.Headers["X-Request-Id"] = []string{"good"}
			r.fake.Script("primary", row.answer, row.answer)
			r.fake.Script("fallback", append([]fakellm.Op{head}, append(fakellm.Play(good, 0), fakellm.Done())...))
			c := r.call()
			c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
			c.Route.NoRetry = true
			run := r.do(c)
			r.wantState(run, buffer.Completed, "")
			r.wantBytes(run, good...)
			if run.Status != 200 || run.Header.Get("X-Request-Id") != "good" || run.Partial != nil || run.ProviderID != "chatcmpl-fake" {
				r.Errorf("status %d, header %v, partial %q, id %q", run.Status, run.Header, run.Partial, run.ProviderID)
			}
			r.wantLedger(run,
				entry{"primary", row.class, policy.Fallback, row.sent, row.billed},
				entry{"fallback", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
			r.wantSends(2)
		}
	})
}

func TestBoundary_NothingIsSentAfterContent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			steps  []fakellm.Op
			reason buffer.Reason
			class  policy.Class
		}{
			{"reset", []fakellm.Op{fakellm.RST()}, buffer.Reset, policy.Transient},
			{"cut", []fakellm.Op{fakellm.Fin()}, buffer.Reset, policy.Transient},
			{"clean end without proof", []fakellm.Op{fakellm.End()}, buffer.EOFWithoutEnd, policy.Transient},
			{"stall", []fakellm.Op{hang}, buffer.Stalled, policy.Transient},
			{"overload", []fakellm.Op{fakellm.Data("data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n"), fakellm.End()}, buffer.ProviderError, policy.Transient},
			{"rate limit", []fakellm.Op{fakellm.Data("data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"no\"}}\n\n"), fakellm.End()}, buffer.ProviderError, policy.Rate},
			{"quota", []fakellm.Op{fakellm.Data("data: {\"error\":{\"code\":\"insufficient_quota\",\"message\":\"no\"}}\n\n"), fakellm.End()}, buffer.ProviderError, policy.Quota},
			{"half an event", []fakellm.Op{fakellm.Bytes(token[:20]), fakellm.RST()}, buffer.Reset, policy.Transient},
		} {
			for n, route := range []string{"primary", "fallback"} {
				r.begin(row.name + " on the " + route)
				c := r.routesTo(n, answer(append([]fakellm.Op{fakellm.Bytes(role), fakellm.Bytes(token)}, row.steps...)...))
				c.Run.Budget.Attempts = 9
				spare := r.approved("spare")
				r.fake.Script("spare", whole("bought twice"))
				c.Route.Fallbacks = append(c.Route.Fallbacks, spare)
				run := r.do(c)
				r.wantState(run, buffer.Interrupted, row.reason)
				last := run.Attempts[len(run.Attempts)-1]
				if got, want := entries(run)[n], (entry{last.Route, row.class, policy.Interrupt, policy.SentUnknown, policy.BilledYes}); got != want {
					r.Errorf("last row %+v, want %+v", got, want)
				}
				if !bytes.HasPrefix(r.bytes(run), append(bytes.Clone(role), token...)) {
					r.Errorf("log holds %q", r.bytes(run))
				}
				r.wantSends(n + 1)
			}
		}
	})
}

// roundTripper is a function before the transport.
type roundTripper struct {
	*http.Transport
	before func(*http.Request)
}

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	t.before(req)
	return t.Transport.RoundTrip(req)
}

// The ledger knows of a request before the provider can: a crash in between leaves a row that may be
// billed, never a purchase without a row.
func TestBoundary_RowIsCommittedBeforeTheSend(t *testing.T) {
	var check func(*http.Request)
	over := func(d dialer) http.RoundTripper {
		return roundTripper{transport(d), func(req *http.Request) { check(req) }}
	}
	bubbleOver(t, over, func(r *rig) {
		r.fake.Script("primary", []fakellm.Op{refusal(503)}, answer(fakellm.Bytes(role), fakellm.RST()))
		r.fake.Script("fallback", whole("a "))
		c := r.call()
		c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
		c.Route.Clocks.ByteIdle = time.Second
		sends := 0
		check = func(req *http.Request) {
			run := r.get(c.Run.ID)
			if len(run.Attempts) != sends+1 {
				r.Errorf("send %d: %d rows", sends+1, len(run.Attempts))
				return
			}
			for i, a := range run.Attempts[:sends] {
				if a.Ended.IsZero() || a.Action == "" {
					r.Errorf("send %d: row %d is open: %+v", sends+1, i+1, a)
				}
			}
			open := run.Attempts[sends]
			if open.N != sends+1 || !open.Ended.IsZero() || open.Billed != policy.BilledUnknown || !open.Sent.Equal(time.Now().Truncate(time.Millisecond)) || "/"+open.Route != req.URL.Path[:1+len(open.Route)] {
				r.Errorf("send %d to %s: its row is %+v", sends+1, req.URL, open)
			}
			if req.GetBody != nil || req.Header.Get("Idempotency-Key") != "" {
				r.Errorf("send %d could be repeated by its transport", sends+1)
			}
			sends++
		}
		run := r.do(c)
		if run.State != buffer.Completed && run.State != buffer.Failed || sends != len(run.Attempts) {
			r.Errorf("run is %s; %d sends, %d rows", run.State, sends, len(run.Attempts))
		}
		r.wantSends(sends)
	})
}
