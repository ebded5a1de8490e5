package buffer_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// refuseFirst is a dialer whose first dials end as first says; the rest reach the provider.
func refuseFirst(n int, first, rest dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n--; n >= 0 {
			return first(ctx, network, addr)
		}
		return rest(ctx, network, addr)
	}
}

func failing(err error) dialer {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

// unanswered is a dial that nobody answers.
func unanswered(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
}

// deaf connects to a peer that never reads and never speaks.
func deaf(context.Context, string, string) (net.Conn, error) {
	near, _ := net.Pipe()
	return near, nil
}

// greedy connects to a peer that reads everything, but answers nothing that it is told.
func greedy(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go io.Copy(io.Discard, far) // ends with the connection
	return near, nil
}

// What did not reach the provider was not sent: it is sent again whatever the call could do.
func TestConnect_FaultsAreNotSent(t *testing.T) {
	for _, row := range []struct {
		name string
		dial dialer
	}{
		{"refused", failing(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})},
		{"no route", failing(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH})},
		{"timeout", failing(&net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded})},
		{"no such name", failing(&net.DNSError{Err: "no such host", Name: "provider", IsNotFound: true})},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			over := func(d dialer) http.RoundTripper { return transport(refuseFirst(1, row.dial, d)) }
			bubbleOver(t, over, func(r *rig) {
				r.fake.Script("primary", whole("a "))
				c := r.call()
				c.Run.Kind = policy.External
				run := r.do(c)
				r.wantState(run, buffer.Completed, "")
				r.wantLedger(run,
					entry{"primary", policy.Transient, policy.Retry, policy.NotSent, policy.BilledNo},
					entry{"primary", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
				if a := run.Attempts[0]; a.RequestBytes != 0 || a.Status != 0 || a.ReusedConn {
					r.Errorf("the row of what was not sent: %+v", a)
				}
				r.wantSends(1)
			})
		})
	}
}

// The clock for dial and TLS is the route's own, as all of them are.
func TestConnect_ClockIsTheRoutes(t *testing.T) {
	for _, row := range []struct {
		name   string
		scheme string
		dial   dialer
		set    provider.Clocks
		at     time.Duration
	}{
		{"dial", "http", unanswered, provider.Clocks{}, 10 * time.Second},
		{"dial, configured", "http", unanswered, provider.Clocks{Connect: 3 * time.Second}, 3 * time.Second},
		{"TLS", "https", greedy, provider.Clocks{}, 10 * time.Second},
		{"TLS, configured", "https", greedy, provider.Clocks{Connect: 3 * time.Second}, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			over := func(dialer) http.RoundTripper { return transport(row.dial) }
			bubbleOver(t, over, func(r *rig) {
				c := r.call()
				c.Run.Budget.Attempts = 1
				c.Route.Clocks = row.set
				c.Send.URL.Scheme = row.scheme
				run := r.do(c)
				r.wantState(run, buffer.Failed, buffer.Reset)
				r.wantFired(run.Attempts[0], row.at)
				r.wantLedger(run, entry{"primary", policy.Transient, policy.Fail, policy.NotSent, policy.BilledNo})
				if run.Status != 502 {
					r.Errorf("status %d, want 502", run.Status)
				}
			})
		})
	}
}

// A peer that accepts and does not take the request is given up like one that does not answer, at the
// latest when dial, TLS and headers would all have run out.
func TestConnect_PeerThatDoesNotReadIsSilent(t *testing.T) {
	for _, row := range []struct {
		name     string
		set      provider.Clocks
		min, max time.Duration
	}{
		{"default", provider.Clocks{}, 60 * time.Second, 80 * time.Second},
		{"configured", provider.Clocks{Connect: time.Second, Headers: 7 * time.Second}, 7 * time.Second, 9 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			over := func(d dialer) http.RoundTripper { return transport(refuseFirst(1, deaf, d)) }
			bubbleOver(t, over, func(r *rig) {
				r.fake.Script("primary", whole("a "))
				c := r.call()
				c.Route.Clocks = row.set
				c.Send.Body = []byte(`{"model":"m","stream":true,"prompt":"` + strings.Repeat("x", 1<<20) + `"}`)
				run := r.do(c)
				r.wantState(run, buffer.Completed, "")
				a := run.Attempts[0]
				if got := a.Ended.Sub(a.Sent); got < row.min || got > row.max {
					r.Errorf("given up after %s, want %s to %s", got, row.min, row.max)
				}
				if a.Class != policy.Transient || a.Action != policy.Retry || a.Status != 0 {
					r.Errorf("the first row: %+v", a)
				}
				r.wantSends(1)
			})
		})
	}
}
