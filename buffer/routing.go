package buffer

import (
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
	return policy.Situation{
		Verdict:       v,
		Kind:          d.started.Kind,
		AttemptsLeft:  b.Attempts - b.Spent - attempts,
		ElapsedLeft:   time.Until(b.Since.Add(b.Elapsed)),
		CostLeft:      b.left(d.way.spent),
		RetryExpected: d.way.route.Expected,
		RetryCost:     d.way.route.Price.Cost(d.way.needs),
		CircuitOpen:   d.way.route.NoRetry,
		Fallback:      d.way.alternative(d.started.Model, d.zap),
	}
}
