package buffer_test

import (
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The last clock of docs/providers.md, section 5: how long a run goes on without a reader is its own
// choice.
func TestDisconnect_CancelsAfterTheLastReader(t *testing.T) {
	t.Parallel()
	const second = time.Second
	words := answer(beats(1000, second, token))
	after := func(d time.Duration) buffer.OnDisconnect { return buffer.OnDisconnect{Cancel: true, After: d} }

	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			policy buffer.OnDisconnect
			answer []fakellm.Op
			stays  []time.Duration // a reader that comes at once, for each
			back   time.Duration   // when another one comes, and stays a second; 0 is never
			at     time.Duration
			state  buffer.State
		}{
			{"at once", after(0), words, []time.Duration{10*second + 500*time.Millisecond}, 0, 10*second + 500*time.Millisecond, buffer.Cancelled},
			{"after a while", after(30 * second), words, []time.Duration{5*second + 500*time.Millisecond}, 0, 35*second + 500*time.Millisecond, buffer.Cancelled},
			{"the last of two", after(30 * second), words, []time.Duration{5 * second, 7*second + 500*time.Millisecond}, 0, 37*second + 500*time.Millisecond, buffer.Cancelled},
			{"one who comes back", after(30 * second), words, []time.Duration{5 * second}, 34*second + 500*time.Millisecond, 65*second + 500*time.Millisecond, buffer.Cancelled},
			{"before content", after(3 * second), answer(hang), []time.Duration{5 * second}, 0, 8 * second, buffer.Failed},
			{"before the head", after(3 * second), []fakellm.Op{hang}, []time.Duration{5 * second}, 0, 8 * second, buffer.Failed},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("bought twice"))
			c := r.call()
			c.Run.OnDisconnect = row.policy
			for _, stay := range row.stays {
				time.AfterFunc(stay, r.runs.Attach(t.Context(), c.Run.ID, true))
			}
			if row.back > 0 {
				time.AfterFunc(row.back, func() { time.AfterFunc(time.Second, r.runs.Attach(t.Context(), c.Run.ID, true)) })
			}
			run := r.do(c)
			r.wantState(run, row.state, buffer.ClientGone)
			r.wantFired(run.Attempts[0], row.at)
			want := entry{"primary", policy.None, policy.Interrupt, policy.SentUnknown, policy.BilledYes}
			if row.state == buffer.Failed {
				want.Action, want.Billed = policy.Fail, policy.BilledUnknown
			}
			r.wantLedger(run, want)
			r.wantSends(1)
		}
	})
}

func TestDisconnect_OtherRunsGoOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			policy buffer.OnDisconnect
			stays  time.Duration
		}{
			{"by default", buffer.OnDisconnect{}, time.Second},
			{"the answer ends first", buffer.OnDisconnect{Cancel: true, After: time.Minute}, time.Second},
			{"the reader stays", buffer.OnDisconnect{Cancel: true}, time.Hour},
		} {
			r.begin(row.name)
			r.fake.Script("primary", answer(beats(20, 2*time.Second, token), fakellm.Bytes(done), fakellm.Done()))
			c := r.call()
			c.Run.OnDisconnect = row.policy
			time.AfterFunc(row.stays, r.runs.Attach(t.Context(), c.Run.ID, true))
			run := r.do(c)
			r.wantState(run, buffer.Completed, "")
			r.wantSends(1)
			if n := r.runs.Readers(c.Run.ID); n != 0 {
				r.Errorf("%d readers are left", n)
			}
		}
	})
}

// A run is stopped in the wait between two sends as well; nothing is sent then.
func TestDisconnect_EndsTheWaitForARetry(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", []fakellm.Op{refusal(429, "Retry-After", "10")}, whole("bought after all"))
		c := r.call()
		c.Run.OnDisconnect = buffer.OnDisconnect{Cancel: true, After: time.Second}
		time.AfterFunc(time.Second, r.runs.Attach(t.Context(), c.Run.ID, true))
		run := r.do(c)
		r.wantState(run, buffer.Failed, buffer.ClientGone)
		if got := run.Ended.Sub(run.Created); got != 2*time.Second {
			r.Errorf("the run ended after %s", got)
		}
		r.wantLedger(run, entry{"primary", policy.Rate, policy.Retry, policy.WasRefused, policy.BilledNo})
		r.wantSends(1)
	})
}

// Cancel stops a run wherever it is and returns it as it ended.
func TestCancel_StopsTheSendThatIsUnderWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			answer []fakellm.Op
			state  buffer.State
		}{
			{"before the head", []fakellm.Op{hang}, buffer.Failed},
			{"before content", answer(fakellm.Bytes(role), hang), buffer.Failed},
			{"after content", answer(fakellm.Bytes(token), hang), buffer.Cancelled},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.answer, whole("bought twice"))
			c := r.call()
			c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
			id := r.start(c)
			time.Sleep(time.Second)
			run, err := r.runs.Cancel(r.Context(), id)
			if err != nil {
				r.Fatal(err)
			}
			r.wantState(run, row.state, buffer.CancelAsked)
			r.wantFired(run.Attempts[0], time.Second)
			r.wantSends(1)
		}
	})
}
