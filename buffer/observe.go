package buffer

import (
	"context"

	"go.uber.org/zap"
)

// Observer is told what happens to runs. Its methods are called from the drains, must not block, and
// tell the same facts as the log.
type Observer interface {
	// AttemptEnded is called for each row of the ledger of a run whose end is stored.
	AttemptEnded(r Run, a Attempt)
	// RunEnded is called once the end of a run is stored; the run has its ledger.
	RunEnded(r Run)
	// Reused is called when a repeat of a call is served from the run, in the state it has then.
	Reused(r Run)
}

func (rs *Runs) observeReuse(r Run) {
	if rs.cfg.Observe != nil {
		rs.cfg.Observe.Reused(r)
	}
}

// observeEnd tells the observer that the end of the run is stored.
func (d *drain) observeEnd(ctx context.Context) {
	if d.rs.cfg.Observe == nil {
		return
	}
	run, err := d.rs.store.Get(ctx, d.started.ID)
	if err != nil {
		d.zap.Warn("ended run not read back", zap.Error(err))
		return
	}
	for _, a := range run.Attempts {
		d.rs.cfg.Observe.AttemptEnded(run, a)
	}
	d.rs.cfg.Observe.RunEnded(run)
}
