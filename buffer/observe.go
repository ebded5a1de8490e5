package buffer

import (
	"context"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
)

// Observer is told what happens to runs. Its methods must not block, and tell the same facts as the log.
type Observer interface {
	// RunBegun is called when the run is stored and before anything is sent. ctx is that of the call that
	// began it, for its values: it ends with the call, and the run does not.
	RunBegun(ctx context.Context, r Run)
	// AttemptEnded is called for each row of the ledger of a run whose end is stored.
	AttemptEnded(r Run, a Attempt)
	// RunEnded is called once the end of a run is stored; the run has its ledger.
	RunEnded(r Run)
	// Reused is called when a repeat of a call is served from the run, in the state it has then.
	Reused(r Run)
	// Joined is called when a reader of the run comes, with its call's ctx; caller says that it came by
	// the provider's route. What it returns is called once, when the reader leaves.
	Joined(ctx context.Context, run ulid.ULID, caller bool) (left func())
}

// Observers are told one after the other.
type Observers []Observer

// RunBegun implements Observer.
func (os Observers) RunBegun(ctx context.Context, r Run) {
	for _, o := range os {
		o.RunBegun(ctx, r)
	}
}

// AttemptEnded implements Observer.
func (os Observers) AttemptEnded(r Run, a Attempt) {
	for _, o := range os {
		o.AttemptEnded(r, a)
	}
}

// RunEnded implements Observer.
func (os Observers) RunEnded(r Run) {
	for _, o := range os {
		o.RunEnded(r)
	}
}

// Reused implements Observer.
func (os Observers) Reused(r Run) {
	for _, o := range os {
		o.Reused(r)
	}
}

// Joined implements Observer.
func (os Observers) Joined(ctx context.Context, run ulid.ULID, caller bool) (left func()) {
	all := make([]func(), len(os))
	for i, o := range os {
		all[i] = o.Joined(ctx, run, caller)
	}
	return func() {
		for _, leave := range all {
			leave()
		}
	}
}

// observer is the configured one, or one that hears nothing.
func (c Config) observer() Observer {
	if c.Observe == nil {
		return Observers{}
	}
	return c.Observe
}

// observeEnd tells the observer that the end of the run is stored.
func (d *drain) observeEnd(ctx context.Context) {
	if d.cfg.Observe == nil {
		return
	}
	run, err := d.rs.store.Get(ctx, d.started.ID)
	if err != nil {
		d.zap.Warn("ended run not read back", zap.Error(err))
		return
	}
	for _, a := range run.Attempts {
		d.cfg.Observe.AttemptEnded(run, a)
	}
	d.cfg.Observe.RunEnded(run)
}
