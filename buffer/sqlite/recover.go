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

// Recover implements buffer.Store. The folder's lock says that all other owners are dead. A crash in
// between leaves the rest for the next time.
func (s *Store) Recover(ctx context.Context) (int, error) {
	total := 0
	for {
		o := &recoverOp{}
		if err := s.queue.do(ctx, o, recoverStep, 0); err != nil {
			return total, fmt.Errorf("recover: %w", err)
		}
		total += o.sealed
		if o.done {
			s.log.Info("runs recovered", zap.Int("runs", total))
			return total, nil
		}
	}
}

type recoverOp struct {
	sealed int
	done   bool
}

const (
	selectOrphans = `SELECT id FROM runs WHERE ended IS NULL AND owner <> ? ORDER BY run LIMIT ?`
	// takeRun is what fences the former owner off, should it still be alive.
	takeRun = `UPDATE runs SET owner = ? WHERE run = ? AND owner = ?`
	// sealUnread is for a row that makes no run any more: a damaged header, or damaged tags.
	sealUnread = `UPDATE runs SET owner = ?, state = iif(state = 'idle', 'failed', 'interrupted'),
		outcome = iif(state = 'idle', 'failed', 'interrupted'), reason = ?, ended = ? WHERE id = ?`
	markRecovered = `UPDATE owners SET recovered = ? WHERE id = ?`
)

func (o *recoverOp) apply(t *tx) (refusal, err error) {
	o.sealed, o.done = 0, false
	ids, err := t.ids(selectOrphans, t.w.owner, recoverStep)
	if err != nil {
		return nil, fmt.Errorf("read orphans: %w", err)
	}
	for _, id := range ids {
		if err := o.seal(t, id); err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
	}
	if o.done = len(ids) < recoverStep; !o.done {
		return nil, nil
	}
	if _, err := t.exec(sweepArrivals); err != nil { // they are in the way of nothing but room
		t.w.s.log.Error("arrivals not deleted", zap.Error(err))
	}
	_, err = t.exec(markRecovered, t.now.UnixMilli(), t.w.owner)
	return nil, err
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
