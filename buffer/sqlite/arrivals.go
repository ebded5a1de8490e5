package sqlite

import (
	"database/sql"
	"fmt"

	"github.com/spool-dev/spool/buffer"
)

// maxArrivals is what the arrivals may take before the oldest of them go into segments, reckoned as
// the window does.
const maxArrivals = 2 << 20

// arrivals knows which rows of the table are still needed. It is the writer's own.
//
//	id ─▶   deleted │ over, to be deleted │ the oldest that is needed … the newest
//	              gone                   low
type arrivals struct {
	limit int64
	held  int64 // from low on
	order []arrival
	gone  int64 // the rows up to this one are deleted
	low   int64 // the rows before this one are over
}

// arrival is one row: what one commit added to one run.
type arrival struct {
	of   *recent
	id   int64
	head int64 // of the run, after it
	cost int64
}

func (a *arrivals) add(n arrival) {
	a.order = append(a.order, n)
	a.held += n.cost
}

// trim drops the rows at the front that a segment holds by now.
func (a *arrivals) trim() {
	for len(a.order) > 0 && a.order[0].of.over(a.order[0].head) {
		a.low = a.order[0].id + 1
		a.held -= a.order[0].cost
		a.order[0] = arrival{}
		a.order = a.order[1:]
	}
}

// over reports whether segments hold the run up to head.
func (r *recent) over(head int64) bool { return r.gone || r.stored >= head }

// The most that tidying adds to one transaction, so that no commit waits long for it.
const (
	tidyRuns = 64
	tidyRows = 2048
)

// tidy puts the oldest arrivals into segments when there are too many, and deletes rows that are over.
func (t *tx) tidy() error {
	a := &t.w.arrivals
	over := a.held - a.limit
	for i := 0; over > 0 && i < len(a.order) && i < tidyRuns; i++ {
		over -= a.order[i].cost
		if a.order[i].of.over(a.order[i].head) {
			continue
		}
		d, err := t.draft(a.order[i].of.view.Load().run.ID)
		if err != nil {
			return err
		}
		if d != nil {
			d.settle = true
		}
	}
	if a.low-1 <= a.gone {
		return nil
	}
	t.deleted = min(a.low-1, a.gone+tidyRows)
	if _, err := t.exec(deleteArrivals, a.gone, t.deleted); err != nil {
		return fmt.Errorf("delete arrivals: %w", err)
	}
	return nil
}

const (
	// The row itself says whether a segment holds it, and not memory: nothing else is deleted.
	deleteArrivals = `DELETE FROM arrivals WHERE id > ? AND id <= ?
		AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run = arrivals.run AND r.ended IS NULL AND r.head <= arrivals.pos)`
	selectArrivals = `SELECT a.run, a.pos, a.start, a.sizes, a.data FROM arrivals a JOIN runs r ON r.run = a.run
		WHERE r.ended IS NULL AND a.pos >= r.head ORDER BY a.id`
	selectLowest = `SELECT coalesce(min(id), 1) - 1 FROM arrivals`
	// sweepArrivals is for the start, when no live run is left that could need one.
	sweepArrivals = `DELETE FROM arrivals WHERE NOT EXISTS
		(SELECT 1 FROM runs r WHERE r.run = arrivals.run AND r.ended IS NULL AND r.head <= arrivals.pos)`
)

// arrived reads what has arrived for live runs that memory does not know. There are few, and the table
// is small and without an index: one look serves the whole transaction.
func (t *tx) arrived(row int64) ([]buffer.Chunk, error) {
	if t.foreign != nil {
		return t.foreign[row], nil
	}
	t.foreign = map[int64][]buffer.Chunk{}
	err := t.w.conn.each(selectArrivals, nil, func(rows *sql.Rows) error {
		var run int64
		var p piece
		if err := rows.Scan(&run, &p.pos, &p.start, &p.sizes, &p.data); err != nil {
			return err
		}
		chunks, err := p.unpack(t.foreign[run])
		t.foreign[run] = chunks
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read arrivals: %w", err)
	}
	return t.foreign[row], nil
}
