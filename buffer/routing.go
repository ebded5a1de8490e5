package buffer

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// way is where a run's attempts go now: a route, the request as it is sent there, and the fallbacks
// that are left. The drain's goroutine owns it.
type way struct {
	primary provider.Route
	route   provider.Route
	send    provider.Send
	model   string
	needs   provider.Needs
	left    []provider.Fallback
	spent   float64 // US dollars that the attempts so far may have cost
}

func newWay(call Call) way {
	return way{
		primary: call.Route, route: call.Route, send: call.Send, model: call.Run.Model,
		needs: provider.NeedsOf(call.Run.Dialect, call.Send.Body), left: call.Route.Fallbacks,
	}
}

// onPrimary reports whether no fallback has been taken.
func (w *way) onPrimary() bool { return w.route.Name == w.primary.Name }

// alternative is the first fallback that is left and can serve the call, for the policy. Those that
// cannot are passed over for good, and why is told.
func (w *way) alternative(model string, log *zap.Logger) policy.Alternative {
	for len(w.left) > 0 {
		f := w.left[0]
		ok, why := f.Keeps(w.primary, model, w.needs)
		if ok {
			return policy.Alternative{
				Approved: true, Healthy: true, IndependentQuota: f.OwnQuota,
				Expected: f.Route.Expected, Cost: f.Route.Price.Cost(w.needs),
			}
		}
		log.Info("fallback passed over", zap.String("route", f.Route.Name), zap.String("why", why))
		w.left = w.left[1:]
	}
	return policy.Alternative{}
}

// fallBack takes the alternative.
func (w *way) fallBack(d provider.Dialect, model string) error {
	f := w.left[0]
	w.left = w.left[1:]
	send, err := w.send.Redirect(w.route, *f.Route, d, f.Models[model])
	if err != nil {
		return err
	}
	w.route, w.send, w.model = *f.Route, send, f.Models[model]
	return nil
}

// situation is what the policy may act with after an attempt.
func (d *drain) situation(v policy.Verdict, attempts int) policy.Situation {
	b := d.started.Budget
	alternative := d.way.alternative(d.started.Model, d.zap)
	if len(d.way.left) > 0 {
		f := d.way.left[0]
		alternative.Healthy = d.rs.circuits.healthy(f.Route.Name, f.Models[d.started.Model])
	}
	return policy.Situation{
		Verdict:       v,
		Kind:          d.started.Kind,
		AttemptsLeft:  b.Attempts - b.Spent - attempts,
		ElapsedLeft:   min(time.Until(b.ends()), d.totalLeft()),
		CostLeft:      b.left(d.way.spent),
		RetryExpected: d.way.route.Expected,
		RetryCost:     d.way.route.Price.Cost(d.way.needs),
		CircuitOpen:   d.way.route.NoRetry || !d.rs.circuits.closed(d.way.route.Name, d.way.model),
		Fallback:      alternative,
	}
}

// totalLeft is what the run's total clock leaves; a very long time where it is off.
func (d *drain) totalLeft() time.Duration {
	total := d.way.primary.Clocks.Total // the run's own, whichever route it takes
	if total <= 0 || d.first.IsZero() {
		return math.MaxInt64
	}
	return time.Until(d.first.Add(total))
}

// entry is the right to make one attempt on a route.
type entry struct {
	row     Attempt     // of the ledger, as it is before the send
	stored  bool        // the log has it already
	release func()      // gives the slot back
	tell    func(error) // the circuit waits for the outcome
}

// enterNow returns the entry of a call's first attempt where it can be made at once, so that the claim can
// tell of it; nil where the drain has to wait, or to go elsewhere.
func (rs *Runs) enterNow(call *Call) *entry {
	release, ok := rs.slots.try(call.Route.Name, call.Run.Caller, call.Route.Concurrency)
	if !ok {
		return nil
	}
	tell, ok := rs.circuits.allow(call.Route.Name, call.Run.Model)
	if !ok {
		release()
		return nil
	}
	return &entry{row: opened(1, call.Route.Name, call.Run.Model), release: release, tell: tell}
}

// leave gives an entry back that was not made use of.
func (e *entry) leave() {
	if e == nil {
		return
	}
	e.tell(errNoOutcome)
	e.release()
}

// opened is the ledger's row of a send that is about to be made.
func opened(n int, route, model string) Attempt {
	return Attempt{N: n, Route: route, Model: model, Sent: time.Now(), Billed: policy.BilledUnknown}
}

// enter waits for a slot on the way's route and asks its circuit. Where the attempt may not be made, it
// says why: nothing was sent and no ledger row is written.
func (d *drain) enter(ctx context.Context, n int) (e *entry, refused policy.Transport) {
	if e = d.entered; e != nil {
		d.entered = nil
		return e, policy.NoFault
	}
	r := d.way.route
	d.phase.set(phaseSlot)
	release, ok := d.rs.slots.take(ctx, r.Name, d.started.Caller, r.Concurrency)
	if !ok {
		return nil, policy.LocalLimit
	}
	tell, ok := d.rs.circuits.allow(r.Name, d.way.model)
	if !ok {
		release()
		return nil, policy.CircuitOpen
	}
	return &entry{row: opened(n, r.Name, d.way.model), release: release, tell: tell}, policy.NoFault
}

// circuit tells the route's circuit how the attempt went, the first time that it is called.
func (d *drain) circuit(outcome error) {
	if d.tell != nil {
		d.tell(outcome)
		d.tell = nil
	}
}

// elsewhere decides what follows where no attempt may be made on the route: the fallback, or the end
// of the run, with the primary's last failure where there was one.
func (d *drain) elsewhere(ctx context.Context, refused policy.Transport, attempts int) bool {
	if s, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		d.close(ctx, nil, Failed, Closing{Reason: s.Reason})
		return false
	}
	v := policy.Classify(policy.Evidence{Transport: refused})
	next := policy.Decide(d.situation(v, attempts))
	d.zap.Info("no attempt may be made", zap.String("route", d.way.route.Name), zap.String("refused", string(refused)), zap.String("action", string(next.Action)))
	if next.Action == policy.Fallback && d.way.fallBack(d.started.Dialect, d.started.Model) == nil {
		d.phase.set(phaseFallback)
		return true
	}
	if d.told != nil {
		d.answerWith(ctx, d.told)
		return false
	}
	d.close(ctx, nil, Failed, Closing{Reason: Limit, Status: policy.FailStatus(v)})
	return false
}
