package jetstream

import (
	"context"
	"errors"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Seal implements buffer.Store. It commits after whatever was committed last: what the owner sends
// later names an earlier message, and is refused.
func (s *Store) Seal(ctx context.Context, id ulid.ULID, to buffer.State, reason buffer.Reason) (buffer.Run, error) {
	return s.end(ctx, id, to, reason)
}

// Release implements buffer.Store.
func (s *Store) Release(ctx context.Context, id ulid.ULID) (buffer.Run, error) {
	return s.end(ctx, id, buffer.Released, "")
}

func (s *Store) end(ctx context.Context, id ulid.ULID, want buffer.State, reason buffer.Reason) (buffer.Run, error) {
	v, err := s.update(ctx, id, func(v version) (draft, error) {
		to, done, err := v.Run.Ending(want)
		if err != nil {
			return draft{}, err
		}
		if done {
			return draft{}, errUnchanged
		}
		return draft{record: s.moved(v.record, to, buffer.Closing{Reason: reason})}, nil
	})
	if err != nil {
		return buffer.Run{}, err
	}
	return listed(v.Run), nil
}

// Reuse implements buffer.Store.
func (s *Store) Reuse(ctx context.Context, id ulid.ULID, claim int) (bool, error) {
	done := false
	_, err := s.update(ctx, id, func(v version) (draft, error) {
		if done = claim == 0 || v.Run.Claimed < claim; !done {
			return draft{}, errUnchanged
		}
		d := draft{record: v.record}
		count := &d.Run.Replays
		if v.Run.State.Live() {
			count = &d.Run.Attaches
		}
		*count++
		d.Run.Claimed = max(d.Run.Claimed, claim)
		return d, nil
	})
	return done && err == nil, err
}

// gone is ErrSealed for a run that is not there any more: nobody can append to it.
func gone(err error) error {
	if errors.Is(err, buffer.ErrNotFound) {
		return buffer.ErrSealed
	}
	return err
}
