package buffer

import (
	"math"
	"time"

	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// MayBeRetried reports whether a repeat of the run's key may be sent anew: nothing was shown, the
// failure may pass, the budget is not spent, and what the provider may have done already can be
// done again. It needs the run's ledger.
func (r Run) MayBeRetried() bool {
	if r.State != Failed || r.Budget.Spent+len(r.Attempts) >= r.Budget.Attempts {
		return false
	}
	if r.Budget.Elapsed != DefaultElapsed && time.Now().After(r.Budget.ends()) { // a time that the caller set
		return false
	}
	if len(r.Attempts) == 0 {
		return r.Reason == OwnerLost || r.Reason == Shutdown || r.Reason == Storage
	}
	last := r.Attempts[len(r.Attempts)-1]
	if last.SentState == policy.SentUnknown && r.Kind != policy.ReadOnly {
		return false
	}
	switch r.Reason {
	case OwnerLost, Shutdown, Storage, Silent:
		return r.Kind == policy.ReadOnly
	}
	switch last.Class {
	case policy.Rate, policy.Transient, policy.Quota:
		return true
	}
	return false
}

// costLeft is what the failed run leaves of its cost limit to the call that succeeds it, in US
// dollars: less what each of its sends may have cost at the routes' prices.
func (c Call) costLeft(failed Run) float64 {
	if failed.Budget.CostUSD == 0 {
		return math.Inf(1)
	}
	needs := provider.NeedsOf(c.Run.Dialect, c.Send.Body)
	left := failed.Budget.CostUSD
	for _, a := range failed.Attempts {
		if a.Billed != policy.BilledNo {
			left -= c.price(a.Route).Cost(needs)
		}
	}
	return left
}

// price is that of one of the call's routes.
func (c Call) price(route string) provider.Price {
	for _, f := range c.Route.Fallbacks {
		if f.Route.Name == route {
			return f.Route.Price
		}
	}
	return c.Route.Price
}

// maySucceed reports whether the call may begin a new run in place of the failed one.
func (c Call) maySucceed(failed Run) bool {
	return failed.MayBeRetried() && c.price(c.Route.Name).Cost(provider.NeedsOf(c.Run.Dialect, c.Send.Body)) <= c.costLeft(failed)
}
