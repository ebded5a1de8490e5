package buffer_test

import (
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// A pooled connection that dies under a request is where net/http would send it again by itself. It
// must not: each physical request has its row.
func TestResend_TransportNeverRepeats(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer []fakellm.Op
		status int
		state  buffer.State
		reason buffer.Reason
	}{
		{"closed after the request", []fakellm.Op{fakellm.Fin()}, 502, buffer.Failed, buffer.Reset},
		{"reset after the request", []fakellm.Op{fakellm.RST()}, 502, buffer.Failed, buffer.Reset},
		{"closed in the head", []fakellm.Op{fakellm.Data("HTTP/1.1 200 OK\r\nContent-"), fakellm.Fin()}, 502, buffer.Failed, buffer.Reset},
		{"closed before content", answer(fakellm.Bytes(role), fakellm.Fin()), 502, buffer.Failed, buffer.Reset},
		{"reset after content", answer(fakellm.Bytes(token), fakellm.RST()), 200, buffer.Interrupted, buffer.Reset},
	} {
		for _, kind := range []policy.Kind{policy.ReadOnly, policy.External} {
			t.Run(row.name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.fake.Script("primary", whole("a "), row.answer, whole("bought twice"))
					first := r.do(r.call())
					r.wantState(first, buffer.Completed, "")

					c := r.call()
					c.Run.Kind = kind
					c.Run.Budget.Attempts = 1
					c.Send.Header.Set("X-Idempotency-Key", "k") // net/http takes it for leave to repeat
					run := r.do(c)
					r.wantState(run, row.state, row.reason)
					if a := run.Attempts[0]; len(run.Attempts) != 1 || !a.ReusedConn || a.RequestBytes != int64(len(c.Send.Body)) || a.SentState != policy.SentUnknown {
						r.Errorf("ledger: %+v", run.Attempts)
					}
					if run.Status != row.status {
						r.Errorf("status %d, want %d", run.Status, row.status)
					}
					r.wantSends(2)
				})
			})
		}
	}
}

// A request without a body is the one that net/http thinks it may always repeat.
func TestResend_NotEvenWithoutABody(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", whole("a "), []fakellm.Op{fakellm.Fin()}, whole("bought twice"))
		r.do(r.call())
		c := r.call()
		c.Run.Budget.Attempts = 1
		c.Send.Body = nil
		c.Send.Header.Set("X-Idempotency-Key", "k")
		run := r.do(c)
		r.wantState(run, buffer.Failed, buffer.Reset)
		if len(run.Attempts) != 1 {
			r.Errorf("ledger: %+v", run.Attempts)
		}
		r.wantSends(2)
	})
}

// Our own retry after such a death is a send of its own, on a connection of its own, with its row.
func TestResend_OwnRetryHasItsRow(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", whole("a "), []fakellm.Op{fakellm.Fin()}, whole("b "))
		r.do(r.call())
		run := r.do(r.call())
		r.wantState(run, buffer.Completed, "")
		r.wantLedger(run,
			entry{"primary", policy.Transient, policy.Retry, policy.SentUnknown, policy.BilledUnknown},
			entry{"primary", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
		if !run.Attempts[0].ReusedConn || run.Attempts[1].ReusedConn {
			r.Errorf("reused connections: %+v", run.Attempts)
		}
		if n := r.fake.Connections(); n != 2 {
			r.Errorf("%d connections, want 2", n)
		}
		r.wantSends(3)
	})
}

// A redirect is an answer, and not one to follow: it could carry the call anywhere.
func TestResend_RedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		bubble(t, func(r *rig) {
			r.fake.Script("primary", []fakellm.Op{refusal(status, "Location", "/elsewhere")})
			r.fake.Script("elsewhere", whole("stolen"))
			c := r.call()
			c.Route.Fallbacks = []provider.Fallback{r.approved("elsewhere")}
			run := r.do(c)
			r.wantState(run, buffer.Failed, buffer.Refused)
			r.wantLedger(run, entry{"primary", policy.Unknown, policy.Fail, policy.WasRefused, policy.BilledNo})
			if run.Status != 502 || run.Header.Get("Location") != "" || run.Attempts[0].Status != status {
				r.Errorf("%d: status %d, header %v, row %d", status, run.Status, run.Header, run.Attempts[0].Status)
			}
			r.wantSends(1)
		})
	}
}

// The drain owns the connection: it is let go when the run has ended, whatever the provider does.
func TestResend_ConnectionIsLetGoAtTheEnd(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", answer(fakellm.Bytes(token), fakellm.Bytes(done), beats(1000, time.Second, comment)))
		run := r.do(r.call())
		r.wantState(run, buffer.Completed, "")
		time.Sleep(2 * time.Second)
		if q := r.sends()[0]; q.Ended.Sub(run.Ended) > time.Second || q.Ended.IsZero() {
			r.Errorf("the run ended at %s, the provider was let go at %s", run.Ended, q.Ended)
		}
	})
}
