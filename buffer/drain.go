package buffer

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	stuck   chan struct{} // closed when the log has refused to take something of the run

	rs *Runs
	setup
	log     Log
	entered *entry         // the first attempt's, where the claim has told of it
	ledger  []Attempt      // the rows as the log has them
	head    int64          // what the log has taken
	rest    *rest          // what it has not; nil while it takes everything
	sealing sync.WaitGroup // tells the log of that
	way     way
	drop    func()      // gives back the room of the request
	first   time.Time   // the first send
	output  int64       // tokens that the provider gave
	tell    func(error) // the circuit waits for the attempt's outcome; nil once told
	told    *refusal    // the primary route's last failure: what a failed run answers with
	zap     *zap.Logger
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
		e, refused := d.enter(ctx, n)
		if refused != policy.NoFault {
			if !d.elsewhere(ctx, refused, n-1) {
				return
			}
			continue
		}
		d.phase.set(phaseConnecting)
		d.tell = e.tell
		wait, again := d.attempt(ctx, e)
		d.circuit(errNoOutcome)
		e.release()
		if !again {
			return
		}
		if !d.rested(ctx, wait) {
			return
		}
		n++
	}
}

// rested waits before the next attempt; false where the run ended meanwhile.
func (d *drain) rested(ctx context.Context, wait time.Duration) bool {
	err := sleep(ctx, wait)
	if err != nil {
		d.close(ctx, nil, Failed, Closing{Reason: reasonOf(err)})
	}
	return err == nil
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

// close commits the last chunks together with the ended state. Where the log does not take them, the
// readers get them from memory, and the log is told as soon as it can be written again.
func (d *drain) close(ctx context.Context, chunks [][]byte, to State, c Closing) {
	ctx = context.WithoutCancel(ctx)
	if d.rest != nil {
		d.closeRest(ctx, chunks, c)
		return
	}
	size := sizeOf(chunks) // they are the log's from then on
	err := d.commit(ctx, chunks, to, c)
	switch {
	case err == nil:
		d.rs.stored.add(len(chunks), size)
		if c.Attempt != nil {
			d.note(*c.Attempt)
		}
		d.observeClose(ctx)
		d.zap.Info("run ended", zap.String("state", string(to)), zap.String("reason", string(c.Reason)))
	case errors.Is(err, ErrSealed):
		d.zap.Info("run was sealed from outside")
		d.observeEnd(ctx)
	case to == Failed: // a failure that cannot be stored is told as one of storage
		d.unstored(ctx, err)
	default:
		if err := d.goOn(ctx, chunks, c, err); err != nil {
			d.zap.Warn("the end of the answer is given up", zap.Error(err))
		}
		d.closeRest(ctx, nil, c) // its readers are told in any case
	}
}

// closeRest ends a run whose log has refused it.
func (d *drain) closeRest(ctx context.Context, chunks [][]byte, c Closing) {
	if err := d.rest.add(chunks); err != nil {
		d.zap.Warn("the end of the answer is given up", zap.Error(err))
	}
	d.rest.finish()
	d.sealing.Wait()
	if c.Attempt == nil {
		return
	}
	if err := d.log.Attempt(ctx, *c.Attempt); err != nil { // it is closed as billed unknown
		d.zap.Warn("attempt not stored", zap.Error(err))
	}
}

// note keeps a row that the log has taken, with the log's times: they are whole milliseconds.
func (d *drain) note(row Attempt) {
	row.Sent, row.Ended = row.Sent.Truncate(time.Millisecond), row.Ended.Truncate(time.Millisecond)
	if n := len(d.ledger); n > 0 && d.ledger[n-1].N == row.N {
		d.ledger[n-1] = row
		return
	}
	d.ledger = append(d.ledger, row)
}

// commit appends to the log, and keeps count of how far it is.
func (d *drain) commit(ctx context.Context, chunks [][]byte, to State, c Closing) error {
	n := int64(len(chunks))
	defer d.rs.writes.begin()()
	err := d.log.Append(context.WithoutCancel(ctx), chunks, to, c)
	if err == nil {
		d.head += n
	}
	return err
}

// unstored ends a run of which the log has refused to take something: one that was sealed from outside
// says how it ended, any other ends here, and the log is told as soon as it can be written again. Who reads on
// from memory is told of an end in any case.
func (d *drain) unstored(ctx context.Context, err error) {
	sealed := errors.Is(err, ErrSealed)
	if d.rest == nil && !sealed {
		_ = d.goOn(ctx, nil, Closing{}, err) // without chunks there is always room
	}
	if d.rest != nil {
		d.rest.finish()
		d.sealing.Wait()
	}
	if sealed {
		d.observeEnd(context.WithoutCancel(ctx))
	}
}

// sealRetry is the wait between two tries to tell a log that its run was cut by storage.
const sealRetry = time.Second

// sealLater closes the run with reason storage as soon as the log takes it, or leaves it to the
// recovery of the next start when the store is closed before. A run whose content was shown has been
// interrupted, whether any of it is stored or not: its key buys nothing again.
func (d *drain) sealLater(ctx context.Context, shown State, c Closing) {
	close(d.stuck)
	d.rs.writes.refused()
	for !d.rs.isDraining() { // else the next start recovers it
		err := d.log.Append(ctx, nil, shown.Stopped(Interrupted), c)
		if err == nil {
			d.rs.writes.taken()
			d.observeEnd(ctx)
			d.zap.Info("run ended", zap.String("state", string(shown.Stopped(Interrupted))), zap.String("reason", string(Storage)))
		}
		if !errors.Is(err, ErrStorage) {
			return
		}
		d.rs.writes.refused()
		if sleep(d.rs.base, sealRetry) != nil {
			return
		}
	}
}
