package buffer

import "github.com/spool-dev/spool/buffer/policy"

// MayBeRetried reports whether a repeat of the run's key may be sent anew: nothing was shown, the
// failure may pass, the budget is not spent, and what the provider may have done already can be
// done again. It needs the run's ledger.
func (r Run) MayBeRetried() bool {
	if r.State != Failed || r.Budget.Spent+len(r.Attempts) >= r.Budget.Attempts {
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
