package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// Recover implements buffer.Store: an owner without a lease is dead. Where this node has not been heard
// for long enough to be sure, it looks again after the time of a lease.
func (s *Store) Recover(ctx context.Context) (int, error) {
	dead, err := s.orphans(ctx)
	if err == nil && len(dead) > 0 && !s.lease.settled() {
		if err := s.wait(ctx, s.cfg.Lease); err != nil {
			return 0, fmt.Errorf("recover: %w", err)
		}
		dead, err = s.orphans(ctx)
	}
	sealed := 0
	for _, e := range dead {
		if err != nil {
			break
		}
		var done bool
		if done, err = s.inherit(ctx, e); done {
			sealed++
		}
	}
	if err != nil {
		return sealed, fmt.Errorf("recover: %w", err)
	}
	if sealed > 0 {
		s.log.Info("runs recovered", zap.Int("runs", sealed))
	}
	return sealed, nil
}

// orphans are the live runs whose owners are dead.
func (s *Store) orphans(ctx context.Context) ([]*entry, error) {
	living, err := s.living(ctx)
	if err != nil {
		return nil, err
	}
	return s.index.all(func(e *entry) bool { return e.run.State.Live() && !living[e.owner] }), nil
}

// inherit seals a dead owner's run, and is its owner from then on. It reports whether it was this node
// that did.
func (s *Store) inherit(ctx context.Context, e *entry) (done bool, err error) {
	_, err = s.update(ctx, e.run.ID, func(v version) (draft, error) {
		if done = v.Run.State.Live() && v.Owner == e.owner; !done {
			return draft{}, errUnchanged
		}
		d := draft{record: s.moved(v.record, v.Run.State.Stopped(buffer.Interrupted), buffer.Closing{Reason: buffer.OwnerLost})}
		d.Owner = s.owner
		return d, nil
	})
	if errors.Is(err, buffer.ErrNotFound) {
		s.index.forget(e.run.ID, e.seq)
		return false, nil
	}
	return done && err == nil, err
}

// reap seals the runs of nodes that die, as soon as this one can be sure.
func (s *Store) reap() {
	tick := time.NewTicker(s.cfg.Reap)
	defer tick.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
		}
		if !s.lease.settled() {
			continue
		}
		if _, err := s.Recover(s.base); err != nil && s.base.Err() == nil {
			s.log.Warn("runs not recovered", zap.Error(err))
		}
	}
}

// wait lets time pass, unless ctx or the store ends.
func (s *Store) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.base.Done():
		return buffer.ErrClosed
	}
}
