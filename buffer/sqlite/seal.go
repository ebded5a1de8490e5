package sqlite

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Seal implements buffer.Store.
func (s *Store) Seal(ctx context.Context, id ulid.ULID, to buffer.State, reason buffer.Reason) (buffer.Run, error) {
	return s.end(ctx, &end{id: id, to: to, reason: reason})
}

// Release implements buffer.Store.
func (s *Store) Release(ctx context.Context, id ulid.ULID) (buffer.Run, error) {
	return s.end(ctx, &end{id: id, to: buffer.Released})
}

func (s *Store) end(ctx context.Context, o *end) (buffer.Run, error) {
	if err := s.queue.do(ctx, o, 0, 0); err != nil {
		return buffer.Run{}, err
	}
	return o.run, nil
}

// end moves a run to an ended state, or from there to its release, whoever owns it.
type end struct {
	id     ulid.ULID
	to     buffer.State
	reason buffer.Reason
	run    buffer.Run
}

func (o *end) apply(t *tx) (refusal, err error) {
	d, err := t.draft(o.id)
	if err != nil {
		return nil, err
	}
	refusal, done, err := o.try(t, d)
	if done || refusal != nil || err != nil {
		return refusal, err
	}
	// Memory was out of date: the run has another owner. The file knows.
	if d, err = t.load(o.id); err != nil {
		return nil, err
	}
	refusal, done, err = o.try(t, d)
	if err == nil && refusal == nil && !done {
		err = fmt.Errorf("run %s changes under the writer", o.id)
	}
	return refusal, err
}

// try is done where the run is as it was wanted to be.
func (o *end) try(t *tx, d *draft) (refusal error, done bool, err error) {
	if d == nil {
		return buffer.ErrNotFound, false, nil
	}
	to, done, refusal := d.run.Ending(o.to)
	if done {
		o.run = d.run
	}
	if done || refusal != nil {
		return refusal, done, nil
	}
	done, err = t.change(d, to, buffer.Closing{Reason: o.reason}, nil)
	if done {
		o.run = d.run
	}
	return nil, done, err
}
