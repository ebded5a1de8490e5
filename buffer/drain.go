package buffer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/policy"
)

// stopped is the cause with which a drain's context ends when somebody asks for its end.
type stopped struct {
	State  State
	Reason Reason
}

func (s stopped) Error() string { return fmt.Sprintf("stopped: %s", s.Reason) }

// drain takes one run from its creation to its end: it sends, receives, commits, decides. One
// goroutine owns it; the first fields are for others too.
type drain struct {
	started Run // as it was created
	done    chan struct{}
	phase   *phase
	stop    context.CancelCauseFunc
	stuck   chan struct{} // closed when the end of the run cannot be stored now

	rs *Runs
	setup
	log    Log
	way    way
	first  time.Time   // the first send
	output int64       // tokens that the provider gave
	tell   func(error) // the circuit waits for the attempt's outcome; nil once told
	told   *refusal    // the primary route's last failure: what a failed run answers with
	zap    *zap.Logger
}

func newDrain(rs *Runs, log Log, run Run, call Call, stop context.CancelCauseFunc) *drain {
	return &drain{
		started: run, done: make(chan struct{}), stuck: make(chan struct{}), phase: newPhase(), stop: stop,
		rs: rs, setup: *rs.setup.Load(), log: log, way: newWay(call),
		zap: rs.log.WithLazy(zap.Stringer("run", run.ID), zap.String("request", call.Request), zap.String("provider", run.Provider)),
	}
}

// run makes attempts until one of them decides the run's end.
func (d *drain) run(ctx context.Context) {
	for n := 1; ; {
		leave, refused := d.enter(ctx)
		if refused != policy.NoFault {
			if !d.elsewhere(ctx, refused, n-1) {
				return
			}
			continue
		}
		wait, again := d.attempt(ctx, n)
		leave()
		if !again {
			return
		}
		if err := sleep(ctx, wait); err != nil {
			d.close(ctx, nil, Failed, Closing{Reason: reasonOf(err)})
			return
		}
		n++
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func reasonOf(err error) Reason {
	if s, ok := errors.AsType[stopped](err); ok {
		return s.Reason
	}
	return Shutdown
}

// close commits the last chunks together with the ended state. What cannot be committed now is
// told as soon as the log can be written again.
func (d *drain) close(ctx context.Context, chunks [][]byte, to State, c Closing) {
	ctx = context.WithoutCancel(ctx)
	size := sizeOf(chunks) // they are the log's from then on
	err := d.log.Append(ctx, chunks, to, c)
	switch {
	case err == nil:
		d.rs.stored.add(len(chunks), size)
		d.observeEnd(ctx)
		d.zap.Info("run ended", zap.String("state", string(to)), zap.String("reason", string(c.Reason)))
	case errors.Is(err, ErrSealed):
		d.zap.Info("run was sealed from outside")
		d.observeEnd(ctx)
	default:
		d.unstored(ctx, "end of run not stored", err)
	}
}

// unstored deals with a log that has refused to take something: one that was sealed from outside says
// how the run ended, any other is told as soon as it can be written again.
func (d *drain) unstored(ctx context.Context, what string, err error) {
	if errors.Is(err, ErrSealed) {
		d.observeEnd(context.WithoutCancel(ctx))
		return
	}
	d.zap.Error(what, zap.Error(err))
	d.sealLater(context.WithoutCancel(ctx))
}

// sealRetry is the wait between two tries to tell a log that its run was cut by storage.
const sealRetry = time.Second

// sealLater closes the run with reason storage as soon as the log takes it, or leaves it to the
// recovery of the next start when the store is closed before.
func (d *drain) sealLater(ctx context.Context) {
	close(d.stuck)
	d.rs.failed.Store(time.Now().UnixNano())
	for !d.rs.isDraining() { // else the next start recovers it
		_, err := d.rs.store.Seal(ctx, d.started.ID, Interrupted, Storage)
		if err == nil {
			d.observeEnd(ctx)
			return
		}
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrNotFound) {
			return
		}
		if sleep(d.rs.base, sealRetry) != nil {
			return
		}
	}
}
