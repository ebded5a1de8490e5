package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// tx is one transaction of the writer. What it does to runs is kept in drafts, which are shown after
// COMMIT and thrown away otherwise.
type tx struct {
	w      *writer
	now    time.Time
	open   bool // BEGIN has been run
	wrote  bool
	sent   bool // COMMIT has been run
	number int64

	drafts  map[ulid.ULID]*draft
	order   []*draft          // the same, as they came
	gone    []ulid.ULID       // runs that memory must forget
	foreign map[int64][]piece // see arrived
	deleted int64             // the arrivals up to this one are deleted
	blank   int64             // this one is emptied
	last    *draft            // the one whose arrival was inserted last
	bytes   int64             // of chunks

	checkpoint bool // to be followed by one
}

// draft is a run as it will be after COMMIT. It is immutable once shown.
type draft struct {
	row     int64
	owner   int64
	key     *dataKey // nil in the clear
	run     buffer.Run
	stored  int64          // the head of what segments hold
	arrived []buffer.Chunk // from there on, as before this transaction
	hidden  []piece        // the same as rows, of a run whose data key cannot be used here
	added   []buffer.Chunk // by this transaction
	fresh   bool           // created by this transaction
	changed bool
	settle  bool  // everything is to go into segments, or has
	arrival int64 // the row that holds added; 0 for none
}

func (w *writer) begin() *tx {
	w.number++
	return &tx{w: w, now: w.s.now(), number: w.number, drafts: map[ulid.ULID]*draft{}}
}

// apply carries out the batch and returns each request's refusal. Who has left by now is skipped.
func (t *tx) apply(batch []*request) (refusals []error, err error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	refusals = make([]error, len(batch))
	for i, r := range batch {
		if err := r.ctx.Err(); err != nil {
			refusals[i] = err
			continue
		}
		if refusals[i], err = r.op.apply(t); err != nil {
			return nil, err
		}
		if err := t.w.s.cfg.Fault(step(r.op)); err != nil {
			return nil, err
		}
	}
	return refusals, t.write()
}

// exec changes the file.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if err := t.w.s.cfg.Fault(AtWrite); err != nil {
		return 0, err
	}
	t.wrote = true
	return t.w.conn.exec(query, args...)
}

// insert is exec for one row, whose new integer key goes to row.
func (t *tx) insert(query string, row *int64, args ...any) error {
	if err := t.w.s.cfg.Fault(AtWrite); err != nil {
		return err
	}
	t.wrote = true
	_, err := t.scan(query, args, row)
	return err
}

// scan reads one row, as this transaction sees the file.
func (t *tx) scan(query string, args []any, dest ...any) (bool, error) {
	return t.w.conn.scan(query, args, dest...)
}

// begin takes the lock of the file, if it still is the log, and looks whether another process has changed
// it: then nothing that memory says is believed before it was looked up.
func (t *tx) begin() error {
	if err := t.w.conn.execHot("BEGIN IMMEDIATE", nil); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t.open = true
	var version int64
	if _, err := t.scan("PRAGMA data_version", nil, &version); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := t.same(); err != nil {
		return err
	}
	if version == t.w.version {
		return nil
	}
	var last int64
	if _, err := t.scan(selectLastArrival, nil, &last); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t.w.version, t.w.age, t.w.arrival = version, t.w.age+1, max(t.w.arrival, last)
	t.w.s.follower.notice()
	return nil
}

// commit makes the transaction durable. A batch that changed nothing costs nothing.
func (t *tx) commit() error {
	if !t.wrote {
		return t.rollback()
	}
	if t.last == nil {
		n, err := t.exec(markCommit, t.number, t.w.owner)
		if err != nil {
			return fmt.Errorf("mark commit: %w", err)
		}
		if n == 0 {
			return errors.New("mark commit: this owner is not in the file")
		}
	}
	if err := t.w.s.cfg.Fault(AtCommit); err != nil {
		return err
	}
	t.sent = true
	if err := t.w.conn.execHot("COMMIT", nil); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return t.w.s.cfg.Fault(AtCommitted)
}

// undo ends a transaction that has failed with err. It returns nil where it is in the file all the same.
func (t *tx) undo(err error) error {
	// SQLite may have rolled back by itself, and then this fails. If it could not, BEGIN will tell.
	_ = t.rollback()
	if !t.sent {
		return err
	}
	kept, known := t.w.kept(t)
	switch {
	case !known:
		return errUnknown
	case !kept:
		return err
	}
	t.w.s.log.Warn("commit was kept though it reported a failure", zap.Error(err))
	return nil
}

// errUnknown ends a transaction of which nobody could find out whether it is in the file.
var errUnknown = fmt.Errorf("%w, and its last commit is not known to be kept", buffer.ErrClosed)

func (t *tx) rollback() error {
	if !t.open {
		return nil
	}
	t.open = false
	_, err := t.w.conn.exec("ROLLBACK")
	return err
}

// show makes what was committed visible, and only then rings.
func (t *tx) show() {
	win := t.w.s.window
	var bells []chan struct{}
	for _, d := range t.order {
		if bell := t.w.publish(d); bell != nil {
			bells = append(bells, bell)
		}
	}
	for _, id := range t.gone {
		t.w.forget(id)
	}
	t.w.arrivals.gone = max(t.w.arrivals.gone, t.deleted)
	t.w.arrivals.blank = max(t.w.arrivals.blank, t.blank)
	t.w.arrivals.trim()
	win.evict()
	for _, bell := range bells {
		close(bell)
	}
	for _, d := range t.order {
		if d.changed {
			if win.runs[d.run.ID] == nil { // perhaps another's
				t.w.s.follower.doubt(d.run.ID)
			}
			t.w.s.bells.Ring(d.run.ID)
		}
	}
}

// pages is about how much the transaction added to the write-ahead log.
func (t *tx) pages() int64 { return 4 + int64(len(t.order)) + t.bytes/pageSize }

// draft returns the run as this transaction sees it; nil where there is none.
func (t *tx) draft(id ulid.ULID) (*draft, error) {
	if d := t.drafts[id]; d != nil {
		return d, nil
	}
	r := t.w.s.window.runs[id]
	if r == nil {
		return t.load(id)
	}
	if r.age != t.w.age {
		owned, err := t.scan(selectOwned, []any{r.row, r.owner, string(r.view.Load().run.State)}, new(int64))
		if err != nil {
			return nil, fmt.Errorf("read owner: %w", err)
		}
		if !owned {
			t.w.forget(id)
			return t.load(id)
		}
		r.age = t.w.age
	}
	v := r.view.Load()
	d := &draft{row: r.row, owner: r.owner, key: r.key, run: *v.run, stored: r.stored}
	if v.run.State.Live() {
		d.arrived = v.chunks[r.stored-v.first:]
	}
	t.keep(d)
	return d, nil
}

func (t *tx) keep(d *draft) {
	t.drafts[d.run.ID] = d
	t.order = append(t.order, d)
}

// drop forgets what the transaction made of a run.
func (t *tx) drop(id ulid.ULID) {
	delete(t.drafts, id)
	t.order = slices.DeleteFunc(t.order, func(d *draft) bool { return d.run.ID == id })
}

// load reads the run from the file, whatever memory says.
func (t *tx) load(id ulid.ULID) (*draft, error) {
	var row runRow
	ok, err := t.w.conn.scan(selectRun, []any{id.String()}, row.dest()...)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if !ok {
		return nil, nil
	}
	d := &draft{row: row.row, owner: row.owner}
	if d.run, err = row.open(t.w.s.keys); err != nil {
		return nil, err
	}
	d.key = row.key
	d.stored = d.run.Head
	if d.run.State.Live() {
		d.arrived = t.arrived(d)
		d.run.Head += int64(len(d.arrived))
		d.run.Bytes += span(d.arrived)
	}
	t.drop(id)
	t.keep(d)
	return d, nil
}

// add gives chunks their positions and offsets behind those of d.
func (t *tx) add(d *draft, chunks [][]byte) {
	d.added = slices.Grow(d.added, len(chunks))
	for _, data := range chunks {
		d.run.Bytes += int64(len(data))
		t.bytes += int64(len(data))
		d.added = append(d.added, buffer.Chunk{Pos: d.run.Head, End: d.run.Bytes, Data: data})
		d.run.Head++
	}
}
