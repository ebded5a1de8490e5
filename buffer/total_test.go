package buffer_test

import (
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The total runs from the first send over all attempts. Before content it fails the run.
func TestTotal_SpansAllAttempts(t *testing.T) {
	t.Parallel()
	total := provider.Clocks{Total: 30 * time.Second, Headers: 20 * time.Second}
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name    string
			answers [][]fakellm.Op
			actions []policy.Action
		}{
			{"first attempt", [][]fakellm.Op{answer(hang)}, []policy.Action{policy.Fail}},
			{"second attempt", [][]fakellm.Op{{hang}, {hang}}, []policy.Action{policy.Retry, policy.Fail}},
			{"second attempt, with comments", [][]fakellm.Op{{hang}, answer(beats(100, 4*time.Second, comment))}, []policy.Action{policy.Retry, policy.Fail}},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answers...)
			run := r.do(asks{}.of(r.call(), total))
			r.wantState(run, buffer.Failed, buffer.Limit)
			if got := run.Ended.Sub(run.Created); got != total.Total {
				r.Errorf("the run ended after %s, want %s", got, total.Total)
			}
			var want []entry
			for _, action := range row.actions {
				want = append(want, entry{"primary", policy.Transient, action, policy.SentUnknown, policy.BilledUnknown})
			}
			r.wantLedger(run, want...)
			r.wantSends(len(want))
		}
	})
}

// A stream that began in the second attempt is cut by the same total.
func TestTotal_CutsAStreamThatBeganLate(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", []fakellm.Op{hang}, answer(beats(100, 3*time.Second, token)))
		run := r.do(asks{}.of(r.call(), provider.Clocks{Total: 30 * time.Second, Headers: 20 * time.Second}))
		r.wantState(run, buffer.Interrupted, buffer.Limit)
		if got := run.Ended.Sub(run.Created); got != 30*time.Second {
			r.Errorf("the run ended after %s", got)
		}
		r.wantLedger(run,
			entry{"primary", policy.Transient, policy.Retry, policy.SentUnknown, policy.BilledUnknown},
			entry{"primary", policy.Transient, policy.Interrupt, policy.SentUnknown, policy.BilledYes})
		r.wantSends(2)
	})
}

// Once the total is over nothing is bought any more: a wait that would reach beyond it is not begun.
func TestTotal_NothingIsSentBeyondIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			answer []fakellm.Op
		}{
			{"a hint beyond it", []fakellm.Op{refusal(429, "Retry-After", "12")}},
			{"a refusal just before it", []fakellm.Op{fakellm.Sleep(9 * time.Second), refusal(503, "Retry-After", "1")}},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("too late"))
			run := r.do(asks{}.of(r.call(), provider.Clocks{Total: 10 * time.Second}))
			if run.State != buffer.Failed || run.Ended.Sub(run.Created) > 10*time.Second {
				r.Errorf("run is %s %q, ended after %s", run.State, run.Reason, run.Ended.Sub(run.Created))
			}
			if len(run.Attempts) != 1 {
				r.Errorf("ledger: %+v", entries(run))
			}
			r.wantSends(1)
		}
	})
}
