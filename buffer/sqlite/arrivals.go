package sqlite

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

const (
	// maxArrivals is what arrivals that no segment holds may take before the oldest of them go into segments,
	// in bytes, reckoned as the window does.
	maxArrivals = 4 << 20
	// maxStretch is how many times as much the table may take with the rows in between that are over: a run that
	// has fallen silent is at its front.
	maxStretch = 3
)

// arrivals knows which rows of the table are still needed. It is the writer's own. Sizes are bytes as the window
// reckons them.
//
//	id ─▶   deleted │ over, to be deleted │ the oldest that is needed … the newest
//	              gone                   low
type arrivals struct {
	limit   int64
	held    int64 // the rows that no segment holds yet
	stretch int64 // the rows from low on
	order   []arrival
	gone    int64 // the rows up to this one are deleted
	blank   int64 // this one holds nothing any more
	low     int64 // the rows before this one are over
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
	a.stretch += n.cost
	n.of.waiting += n.cost
}

// settled is told that segments hold all of a run, or that the run is not this owner's any more.
func (a *arrivals) settled(r *recent) {
	a.held -= r.waiting
	r.waiting = 0
}

// trim drops the rows at the front that a segment holds by now.
func (a *arrivals) trim() {
	for len(a.order) > 0 && a.order[0].of.over(a.order[0].head) {
		a.low = a.order[0].id + 1
		a.stretch -= a.order[0].cost
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

// tidy puts runs into segments that hold up others, and deletes rows that are over.
func (t *tx) tidy() error {
	a := &t.w.arrivals
	if err := t.settleEarly(); err != nil {
		return err
	}
	if a.low > t.w.arrival && a.blank < t.w.arrival {
		if _, err := t.exec(blankNewest); err != nil {
			return fmt.Errorf("blank arrival: %w", err)
		}
		t.blank = t.w.arrival
	}
	last := min(a.low-1, a.gone+tidyRows, t.w.arrival-1)
	if last <= a.gone {
		return nil
	}
	t.deleted = last
	if _, err := t.exec(deleteArrivals, a.gone, t.deleted); err != nil {
		return fmt.Errorf("delete arrivals: %w", err)
	}
	return nil
}

// settleEarly has runs go into segments before they have enough for one: those of the oldest arrivals, while more
// wait than may; and those at the front of the table and of the window, where either is too large, since nothing
// behind them can be let go. What a run has in segments counts as waiting no more, wherever its rows are: so each
// transaction settles about as much as comes, and runs that began together are not settled all at once, which would
// hold up every reader.
func (t *tx) settleEarly() error {
	a, win := &t.w.arrivals, t.w.s.window
	early := early{t: t}
	for i, excess := 0, a.held-a.limit; excess > 0 && i < len(a.order) && early.more(); i++ {
		if early.settle(a.order[i].of, a.order[i].head) {
			excess -= a.order[i].of.waiting
		}
	}
	for i, excess := 0, a.stretch-maxStretch*a.limit; excess > 0 && i < len(a.order) && early.more(); i++ {
		early.settle(a.order[i].of, a.order[i].head)
		excess -= a.order[i].cost
	}
	for i, excess := 0, win.held-win.limit; excess > 0 && i < len(win.order) && early.more(); i++ {
		early.settle(win.order[i].of, win.order[i].head)
		excess -= win.order[i].cost
	}
	return early.err
}

// early settles no more runs than one transaction is to have.
type early struct {
	t    *tx
	runs int
	err  error
}

func (e *early) more() bool { return e.err == nil && e.runs < tidyRuns }

// settle reports whether the run goes into segments, and did not before.
func (e *early) settle(r *recent, head int64) bool {
	if r.over(head) {
		return false
	}
	d, err := e.t.draft(r.view.Load().run.ID)
	if e.err = err; err != nil || d == nil || d.owner != e.t.w.owner || d.settle { // another process may keep it by now
		return false
	}
	d.settle = true
	e.runs++
	return true
}

const (
	// The row itself says whether a segment holds it, and not memory: nothing else is deleted.
	deleteArrivals = `DELETE FROM arrivals WHERE id > ? AND id <= ?
		AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run = arrivals.run AND r.ended IS NULL AND r.head <= arrivals.pos)`
	selectArrivals = `SELECT a.run, a.pos, a.start, a.sizes, a.data, a.cipher FROM arrivals a JOIN runs r ON r.run = a.run
		WHERE r.ended IS NULL AND a.pos >= r.head`
	// blankNewest is for the newest row, whoever's it is, when it is over: from it all processes count on, so it
	// stays, and nothing of the answer does.
	blankNewest = `UPDATE arrivals SET sizes = '[]', data = x'', cipher = NULL WHERE id = (SELECT max(id) FROM arrivals)
		AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run = arrivals.run AND r.ended IS NULL AND r.head <= arrivals.pos)`
	forward  = ` ORDER BY a.id`
	backward = ` ORDER BY a.id DESC`
	// selectLowest is what is before the table's beginning.
	selectLowest = `SELECT coalesce(min(id), 1) - 1 FROM arrivals`
	// sweepArrivals is for the start, when few live runs are left that could need one.
	sweepArrivals = `DELETE FROM arrivals WHERE id < (SELECT max(id) FROM arrivals) AND NOT EXISTS
		(SELECT 1 FROM runs r WHERE r.run = arrivals.run AND r.ended IS NULL AND r.head <= arrivals.pos)`
)

// arrived reads what has arrived for live runs that memory does not know, as far as it can be read without
// a gap. There are few, and the table is small and without an index: one look serves the whole
// transaction. Where this process cannot use the run's data key the chunks have their places alone, and the draft
// keeps the rows as they are.
func (t *tx) arrived(d *draft) []buffer.Chunk {
	if t.foreign == nil {
		t.foreign = map[int64][]piece{}
		if err := t.readArrivals(selectArrivals + forward); err != nil {
			// A page is damaged. What is behind it can be reached from the other end.
			t.w.s.log.Error("arrivals are damaged", zap.Error(err))
			err = t.readArrivals(selectArrivals + backward)
			t.w.s.log.Error("arrivals are damaged", zap.Error(err))
		}
	}
	pieces := t.foreign[d.row]
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.pos, b.pos) })
	var chunks []buffer.Chunk
	for _, p := range pieces {
		if p.pos < d.stored+int64(len(chunks)) {
			continue // from both ends
		}
		row, shut := p, d.key.usable() != nil
		var err error
		if !shut {
			p, err = p.decrypt(d.key)
		}
		more := chunks
		if err == nil {
			more, err = p.unpack(chunks)
		}
		if p.pos > d.stored+int64(len(chunks)) || err != nil {
			t.w.s.log.Error("arrivals of a run are damaged", zap.Int64("row", d.row), zap.Int64("readable", int64(len(chunks))), zap.Error(err))
			break
		}
		chunks = more
		if shut {
			d.hidden = append(d.hidden, row)
		}
	}
	return chunks
}

func (t *tx) readArrivals(query string) error {
	return t.w.conn.each(query, nil, func(rows *sql.Rows) error {
		var run int64
		var p piece
		err := rows.Scan(&run, &p.pos, &p.start, &p.sizes, &p.data, &p.cipher)
		if err == nil {
			t.foreign[run] = append(t.foreign[run], p)
		}
		return err
	})
}
