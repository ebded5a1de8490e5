package buffer

import (
	"context"
	"time"
)

// orphanAge is how long a run can be found by a retry that carries no key.
const orphanAge = 10 * time.Minute

// Retry is what a call without a key says of itself: that the caller's SDK sends it again, or which
// turn of its agent it serves.
type Retry struct {
	Count int    // how often the SDK has sent it before; 0 for a first send
	Turn  string // the agent's turn; empty where it names none
}

// adopt finds the run that a retry without a key means: the caller's own, of the same body, whose
// caller has gone and that no retry as late has taken over. It takes it over, for this retry alone.
// Without one the zero Run is returned: the retry is a call like any other.
func (rs *Runs) adopt(ctx context.Context, want Run, retry Retry) (Run, error) {
	if rs.cfg().NoDedupe || want.Key != "" || retry.Count == 0 && retry.Turn == "" {
		return Run{}, nil
	}
	youngest := time.Now().Add(-orphanAge)
	for run, err := range rs.store.List(ctx, Filter{Caller: want.Caller, BodyHash: want.BodyHash}) {
		if err != nil {
			return Run{}, err
		}
		if run.Created.Before(youngest) {
			return Run{}, nil
		}
		if !orphaned(run, retry) {
			continue
		}
		release, alone := rs.hold(run.ID) // until the caller leaves, nobody else finds the run orphaned
		if !alone && run.State != Failed {
			release()
			continue
		}
		taken, err := rs.store.Reuse(ctx, run.ID, retry.claim(run))
		if err != nil || !taken {
			release()
		}
		if err != nil {
			return Run{}, err
		}
		if taken {
			context.AfterFunc(ctx, release)
			return rs.store.Get(ctx, run.ID)
		}
	}
	return Run{}, nil
}

// claim is what the retry takes the run over with: an SDK's retry counts by itself, a turn's call
// again is one more than the last that took it.
func (r Retry) claim(run Run) int {
	if r.Count > 0 {
		return r.Count
	}
	return run.Claimed + 1
}

// orphaned reports whether the retry may take the run over, as far as the log knows.
func orphaned(run Run, retry Retry) bool {
	switch {
	case run.Key != "", run.State == Released, run.Claimed >= retry.claim(run):
		return false
	case retry.Count == 0 && run.Turn != retry.Turn:
		return false
	}
	return true
}
