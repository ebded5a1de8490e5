package buffer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/provider"
)

// What Start refuses with, besides the store's errors.
var (
	// ErrDraining: the process is going down and takes no new runs.
	ErrDraining = errors.New("draining")
	// ErrIDTaken: the run id that the caller chose belongs to another caller.
	ErrIDTaken = errors.New("run id is taken")
	// ErrKeyReused: the key names a run with another body.
	ErrKeyReused = errors.New("key was used for another request")
)

// Call is a request that becomes a run: who asks for what (Run, whose ID may be zero), the route it
// takes, and the request as it is sent.
type Call struct {
	Run     Run
	Request string // the id of the request that it came with, for the log; empty for none
	Retry   Retry
	Route   provider.Route
	Send    provider.Send
}

// Start makes a call durable and starts its drain, or finds the run that the call names already:
// then existed is true and nothing is sent. A failed run whose failure may pass is succeeded by a
// new one under the same key. Its errors are ErrIDTaken, ErrKeyReused, ErrReleased (with the run),
// ErrDraining, and the store's.
func (rs *Runs) Start(ctx context.Context, call Call) (run Run, existed bool, err error) {
	if call.Run.Key == "" && call.Run.ID != (ulid.ULID{}) {
		call.Run.Key = call.Run.ID.String() // an id that the caller chose is its key
	}
	if rs.isDraining() {
		return rs.attachOnly(ctx, call, ErrDraining)
	}
	orphan, err := rs.adopt(ctx, call.Run, call.Retry)
	switch {
	case err != nil:
		return Run{}, false, fmt.Errorf("find the first send: %w", err)
	case orphan.ID == (ulid.ULID{}):
		call.Run.Budget.Spent += call.Retry.Count // sends that were made elsewhere, or before
	case !call.maySucceed(orphan):
		rs.cfg().observer().Reused(orphan)
		return orphan, true, nil
	default:
		succeed(&call, orphan)
	}
	for {
		run, existed, again, err := rs.create(ctx, &call)
		if !again {
			return run, existed, err
		}
	}
}

// create makes the run, or finds the one that has its key. again says that the call is to succeed a
// failed run and must be created anew.
func (rs *Runs) create(ctx context.Context, call *Call) (run Run, existed, again bool, err error) {
	if call.Run.ID == (ulid.ULID{}) {
		if call.Run.ID, err = ulid.New(ulid.Timestamp(time.Now()), rand.Reader); err != nil {
			return Run{}, false, false, err
		}
	}
	admitted, err := rs.callers.admit(call.Run.Caller)
	if err != nil {
		return rs.existing(ctx, *call, err)
	}
	drop, err := rs.bodies.hold(len(call.Send.Body))
	if err != nil {
		admitted.cancel()
		return rs.existing(ctx, *call, err)
	}
	release, _ := rs.hold(call.Run.ID) // a run is no orphan while its own caller is about to read it
	want, first := call.Run, rs.enterNow(call)
	if first != nil {
		want.Attempts = []Attempt{{N: first.row.N, Route: first.row.Route, Model: first.row.Model, Billed: first.row.Billed}}
	}
	log, run, err := rs.claim(ctx, want)
	if err == nil {
		context.AfterFunc(ctx, release)
		rs.cfg().observer().RunBegun(ctx, run)
		rs.startDrain(log, run, *call, admitted, first, drop)
		return run, false, false, nil
	}
	first.leave()
	release()
	admitted.cancel()
	drop()
	if !errors.Is(err, ErrExists) {
		rs.writes.refused()
		return rs.existing(ctx, *call, fmt.Errorf("create run: %w", err))
	}
	if run, err = rs.current(ctx, run, call.Run); err != nil {
		return run, true, false, err
	}
	if call.maySucceed(run) {
		succeed(call, run)
		return run, false, true, nil
	}
	if _, err := rs.store.Reuse(ctx, run.ID, 0); err != nil {
		rs.log.Warn("reuse not counted", zap.String("request", call.Request), zap.Stringer("run", run.ID), zap.Error(err))
	}
	rs.cfg().observer().Reused(run)
	return run, true, false, nil
}

// claim creates the run, in a time in which its caller still waits. A caller that leaves must not leave a
// run behind that nobody drains.
func (rs *Runs) claim(ctx context.Context, want Run) (Log, Run, error) {
	if rs.writes.stalled() {
		return nil, Run{}, ErrStorage
	}
	within, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), storagePatience, ErrStorage)
	defer cancel()
	defer rs.writes.begin()()
	log, run, err := rs.store.Create(within, want)
	if within.Err() == nil || err == nil || errors.Is(err, ErrExists) {
		return log, run, err
	}
	// It may have been created all the same, by a log that hangs and goes on later.
	rs.drains.Go(func() {
		if _, err := rs.store.Seal(context.WithoutCancel(ctx), want.ID, Interrupted, Storage); err != nil && !errors.Is(err, ErrNotFound) {
			rs.log.Warn("run of an unanswered claim not sealed", zap.Stringer("run", want.ID), zap.Error(err))
		}
	})
	return nil, Run{}, context.Cause(within)
}

// existing serves a call that may not begin a run from the run that has its key; else it is refused
// with why.
func (rs *Runs) existing(ctx context.Context, call Call, why error) (run Run, existed, again bool, err error) {
	run, existed, err = rs.attachOnly(ctx, call, why)
	return run, existed, false, err
}

// current checks that the run that holds the call's id or key is the call's own, and follows the
// key to the run that holds it now.
func (rs *Runs) current(ctx context.Context, held, want Run) (Run, error) {
	if held.Caller != want.Caller {
		return Run{}, ErrIDTaken
	}
	if held.BodyHash != want.BodyHash {
		return held, ErrKeyReused
	}
	if want.Key != "" && held.Key == want.Key {
		for r, err := range rs.store.List(ctx, Filter{Caller: want.Caller, Key: want.Key, Limit: 1}) {
			if err != nil {
				return held, err
			}
			held = r
		}
	}
	if held.State == Released {
		return held, ErrReleased
	}
	return rs.store.Get(ctx, held.ID)
}

// attachOnly serves what exists under the call's key; nothing new begins, why says the reason.
func (rs *Runs) attachOnly(ctx context.Context, call Call, why error) (Run, bool, error) {
	f := Filter{Caller: call.Run.Caller, Key: call.Run.Key, Limit: 1}
	if f.Key == "" {
		return Run{}, false, why
	}
	for held, err := range rs.store.List(ctx, f) {
		if err != nil {
			return Run{}, false, err
		}
		run, err := rs.current(ctx, held, call.Run)
		return run, true, err
	}
	return Run{}, false, why
}

// succeed makes the call the successor of the failed run: a new id, the same key, the old budget.
func succeed(call *Call, failed Run) {
	next := &call.Run
	if left := call.costLeft(failed); !math.IsInf(left, 1) {
		next.Budget.CostUSD = left
	}
	next.ID = ulid.ULID{}
	next.RetryOf = failed.ID
	next.Budget.Spent += failed.Budget.Spent + len(failed.Attempts)
	next.Budget.Since = failed.Budget.Since
}

func (rs *Runs) startDrain(log Log, run Run, call Call, admitted *admission, first *entry, drop func()) {
	ctx, cancel := context.WithCancelCause(rs.base)
	d := newDrain(rs, log, run, call, cancel)
	d.drop = drop
	if first != nil {
		first.stored, first.row.Sent = true, time.Now()
		d.entered, d.ledger = first, []Attempt{first.row}
	}
	rs.mu.Lock()
	rs.live[run.ID] = d
	rs.mu.Unlock()
	rs.drains.Go(func() {
		defer close(d.done)
		d.run(ctx)
		cancel(nil)
		admitted.end(d.output)
		d.forget()
		rs.mu.Lock()
		delete(rs.live, run.ID)
		if r := rs.readers[run.ID]; r == nil || r.n == 0 {
			rs.rests.drop(run.ID)
		}
		if r := rs.readers[run.ID]; r != nil && r.leave != nil { // nobody is waited for any more
			r.leave.Stop()
			r.leave = nil
			rs.forget(run.ID, r)
		}
		rs.mu.Unlock()
	})
}
