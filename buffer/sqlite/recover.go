package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// recoverStep is how many runs one transaction recovers.
const recoverStep = 500

// Recover implements buffer.Store. The locks say which owners are dead. A crash in between leaves the rest
// for the next time.
func (s *Store) Recover(ctx context.Context) (int, error) {
	total := 0
	for {
		o := &recoverOp{}
		if err := s.queue.do(ctx, o, recoverStep, 0); err != nil {
			return total, fmt.Errorf("recover: %w", err)
		}
		total += o.sealed
		if !o.done {
			continue
		}
		for _, id := range o.dead {
			if err := s.owners.bury(id); err != nil { // it stays in the way of nothing
				s.log.Warn("file of a dead owner not removed", zap.Error(err))
			}
		}
		s.recovered.Store(true)
		s.log.Info("runs recovered", zap.Int("runs", total), zap.Int64s("owners", o.dead))
		return total, nil
	}
}

type recoverOp struct {
	dead   []int64
	sealed int
	done   bool
}

const (
	// selectSuspects are those that nobody has seen end, or that have left live runs behind.
	selectSuspects = `SELECT id FROM owners WHERE ended IS NULL AND id <> ?1
		UNION SELECT owner FROM runs WHERE ended IS NULL AND owner <> ?1`
	selectOrphans = `SELECT id FROM runs WHERE ended IS NULL AND owner = ? ORDER BY run LIMIT ?`
	// takeRun is what fences the former owner off, should it still be alive.
	takeRun = `UPDATE runs SET owner = ? WHERE run = ? AND owner = ?`
	// sealUnread is for a row that makes no run any more: a damaged header, or damaged tags.
	sealUnread = `UPDATE runs SET owner = ?, state = iif(state = 'idle', 'failed', 'interrupted'),
		outcome = iif(state = 'idle', 'failed', 'interrupted'), reason = ?, ended = ? WHERE id = ?`
	markDead      = `UPDATE owners SET ended = ? WHERE id = ? AND ended IS NULL`
	markRecovered = `UPDATE owners SET recovered = ? WHERE id = ?`
)

func (o *recoverOp) apply(t *tx) (refusal, err error) {
	o.sealed, o.done = 0, false
	if o.dead, err = t.dead(); err != nil {
		return nil, err
	}
	for _, owner := range o.dead {
		ids, err := t.ids(selectOrphans, owner, recoverStep-o.sealed)
		if err != nil {
			return nil, fmt.Errorf("read orphans: %w", err)
		}
		for _, id := range ids {
			if err := o.seal(t, id); err != nil {
				return nil, fmt.Errorf("run %s: %w", id, err)
			}
		}
		if o.sealed >= recoverStep {
			return nil, nil
		}
		if _, err := t.exec(markDead, t.now.UnixMilli(), owner); err != nil {
			return nil, fmt.Errorf("mark the dead: %w", err)
		}
	}
	o.done = true
	for _, query := range []string{sweepArrivals, blankNewest} {
		if _, err := t.exec(query); err != nil { // they are in the way of nothing but room
			t.w.s.log.Error("arrivals not deleted", zap.Error(err))
		}
	}
	_, err = t.exec(markRecovered, t.now.UnixMilli(), t.w.owner)
	return nil, err
}

// dead are the owners that have died since somebody looked.
func (t *tx) dead() (dead []int64, err error) {
	var suspects []int64
	err = t.w.conn.each(selectSuspects, []any{t.w.owner}, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		suspects = append(suspects, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read owners: %w", err)
	}
	for _, id := range suspects {
		lives, err := t.w.s.owners.alive(id)
		if err != nil {
			return nil, err
		}
		if !lives {
			dead = append(dead, id)
		}
	}
	return dead, nil
}

func (o *recoverOp) seal(t *tx, id ulid.ULID) error {
	d, err := t.load(id)
	if err != nil {
		t.w.s.log.Error("run cannot be read, and is sealed as it stands", zap.Stringer("run", id), zap.Error(err))
		o.sealed++
		_, err := t.exec(sealUnread, t.w.owner, string(buffer.OwnerLost), t.now.UnixMilli(), id.String())
		return err
	}
	if d == nil {
		return nil
	}
	n, err := t.exec(takeRun, t.w.owner, d.row, d.owner)
	if err != nil || n == 0 {
		return err
	}
	d.owner = t.w.owner
	ok, err := t.change(d, d.run.State.Stopped(buffer.Interrupted), buffer.Closing{Reason: buffer.OwnerLost}, nil)
	if err == nil && !ok {
		err = errors.New("changes under the writer")
	}
	o.sealed++
	return err
}

// ids reads a column of runs' ids.
func (t *tx) ids(query string, args ...any) (ids []ulid.ULID, err error) {
	err = t.w.conn.each(query, args, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		id, err := ulid.ParseStrict(text)
		ids = append(ids, id)
		return err
	})
	return ids, err
}
