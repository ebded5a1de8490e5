package buffer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// What the caller's budget leaves bounds the wait for the first content, and nothing after it.
func TestBudget_CutsTheClocksBeforeContent(t *testing.T) {
	const second = time.Second
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name    string
			elapsed time.Duration
			answers [][]fakellm.Op
			lasts   time.Duration
			state   buffer.State
			sends   int
		}{
			{"silence", 10 * second, [][]fakellm.Op{{hang}}, 10 * second, buffer.Failed, 1},
			{"a head and comments", 10 * second, [][]fakellm.Op{answer(beats(100, 3*second, comment))}, 10 * second, buffer.Failed, 1},
			{"silence after a refusal", 10 * second, [][]fakellm.Op{{refusal(503, "Retry-After", "4")}, {hang}}, 10 * second, buffer.Failed, 2},
			{"longer than the clocks", 150 * second, [][]fakellm.Op{{hang}, whole("a ")}, 60 * second, buffer.Completed, 2},
			{"a long answer", 10 * second, [][]fakellm.Op{answer(beats(10, 9*second, token), fakellm.Bytes(done), fakellm.Done())}, 90 * second, buffer.Completed, 1},
			{"the default, and a first thought that is longer", buffer.DefaultElapsed, [][]fakellm.Op{answer(beats(39, 15*second, comment), fakellm.Bytes(token), fakellm.Bytes(done), fakellm.Done())}, 585 * second, buffer.Completed, 1},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answers...)
			c := r.call()
			c.Run.Model = "o3"
			c.Run.Budget.Elapsed = row.elapsed
			run := r.do(c)
			jitter := time.Duration(row.sends-1) * second / 2
			if got := run.Ended.Sub(run.Created); run.State != row.state || got < row.lasts || got > row.lasts+jitter {
				r.Errorf("run is %s %q after %s, want %s after %s", run.State, run.Reason, got, row.state, row.lasts)
			}
			r.wantSends(row.sends)
		}
	})
}

// It bounds the way to the provider as well: all that stands before the first content together.
func TestBudget_CutsDialAndWrite(t *testing.T) {
	for _, row := range []struct {
		name string
		dial dialer
	}{{"nobody answers the dial", unanswered}, {"nobody reads the request", deaf}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			bubbleOver(t, func(dialer) http.RoundTripper { return transport(row.dial) }, func(r *rig) {
				c := r.call()
				c.Run.Budget.Elapsed = 3 * time.Second
				run := r.do(c)
				if got := run.Ended.Sub(run.Created); run.State != buffer.Failed || got != 3*time.Second {
					r.Errorf("run is %s %q after %s, want failed after 3s", run.State, run.Reason, got)
				}
			})
		})
	}
}

// Of the attempts that are left, none is made with no time to answer.
func TestBudget_FallbackMustFitWhatIsLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name     string
			expected time.Duration
			state    buffer.State
		}{
			{"it fits", 8 * time.Second, buffer.Completed},
			{"it does not", 9 * time.Second, buffer.Failed},
		} {
			r.begin(row.name)
			r.fake.Script("primary", []fakellm.Op{fakellm.Sleep(2 * time.Second), refusal(429, "Retry-After", "60")})
			r.fake.Script("fallback", whole("b "))
			c := r.call()
			c.Run.Budget.Elapsed = 10 * time.Second
			f := r.approved("fallback")
			f.Route.Expected = row.expected
			c.Route.Fallbacks = []provider.Fallback{f}
			run := r.do(c)
			if run.State != row.state || run.Attempts[0].Class != policy.Rate {
				r.Errorf("run is %s %q: %+v", run.State, run.Reason, entries(run))
			}
		}
	})
}
