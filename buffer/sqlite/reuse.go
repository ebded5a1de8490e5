package sqlite

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Reuse implements buffer.Store.
func (s *Store) Reuse(ctx context.Context, id ulid.ULID, claim int) (bool, error) {
	o := &reuse{id: id, claim: claim}
	if err := s.queue.do(ctx, o, 0, 0); err != nil {
		return false, err
	}
	return o.done, nil
}

type reuse struct {
	id    ulid.ULID
	claim int
	done  bool
}

const (
	countReplay = `UPDATE calls SET replays = replays + 1, claimed = max(claimed, ?1) WHERE run = ?2 AND (?1 = 0 OR claimed < ?1)`
	countAttach = `UPDATE calls SET attaches = attaches + 1, claimed = max(claimed, ?1) WHERE run = ?2 AND (?1 = 0 OR claimed < ?1)`
)

func (o *reuse) apply(t *tx) (refusal, err error) {
	o.done = false // an earlier try of the same request may have been rolled back
	d, err := t.draft(o.id)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return buffer.ErrNotFound, nil
	}
	query, count := countReplay, &d.run.Replays
	if d.run.State.Live() {
		query, count = countAttach, &d.run.Attaches
	}
	n, err := t.exec(query, o.claim, d.row)
	if err != nil {
		return nil, fmt.Errorf("count reuse: %w", err)
	}
	if n > 0 {
		*count++
		d.run.Claimed = max(d.run.Claimed, o.claim)
		d.changed, o.done = true, true
	}
	return nil, nil
}
