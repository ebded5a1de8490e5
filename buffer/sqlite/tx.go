package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

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

	drafts map[ulid.ULID]*draft
	gone   []ulid.ULID // runs that memory must forget
	chunks []any       // what is still to be inserted, four values each
	bytes  int64

	checkpoint bool // to be followed by one
}

// draft is a run as it will be after COMMIT. It is immutable once shown.
type draft struct {
	row     int64
	owner   int64
	run     buffer.Run
	added   []buffer.Chunk
	fresh   bool // created by this transaction
	changed bool
}

func (w *writer) begin() *tx {
	w.number++
	return &tx{w: w, now: w.s.now(), number: w.number, drafts: map[ulid.ULID]*draft{}}
}

// apply carries out the batch and returns each request's refusal. Who has left by now is skipped.
func (t *tx) apply(batch []*request) (refusals []error, err error) {
	refusals = make([]error, len(batch))
	for i, r := range batch {
		if err := r.ctx.Err(); err != nil {
			refusals[i] = err
			continue
		}
		if refusals[i], err = r.op.apply(t); err != nil {
			return nil, err
		}
	}
	return refusals, t.insertChunks()
}

// exec changes the file, inside the transaction that it opens with the first change.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if err := t.w.s.cfg.fault("write"); err != nil {
		return 0, err
	}
	if err := t.begin(); err != nil {
		return 0, err
	}
	t.wrote = true
	return t.w.conn.exec(query, args...)
}

// insert is exec for one row, whose new integer key goes to row.
func (t *tx) insert(query string, row *int64, args ...any) error {
	if err := t.w.s.cfg.fault("write"); err != nil {
		return err
	}
	if err := t.begin(); err != nil {
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

func (t *tx) begin() error {
	if t.open {
		return nil
	}
	if _, err := t.w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t.open = true
	return nil
}

// commit makes the transaction durable. A batch that changed nothing costs nothing.
func (t *tx) commit() error {
	if !t.wrote {
		return t.rollback()
	}
	n, err := t.exec(markCommit, t.number, t.w.owner)
	if err != nil {
		return fmt.Errorf("mark commit: %w", err)
	}
	if n == 0 {
		return errors.New("mark commit: this owner is not in the file")
	}
	if err := t.w.s.cfg.fault("commit"); err != nil {
		return err
	}
	t.sent = true
	if _, err := t.w.conn.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return t.w.s.cfg.fault("committed")
}

// undo ends a transaction that has failed, and reports whether it is in the file all the same.
func (t *tx) undo() (kept bool) {
	// SQLite may have rolled back by itself, and then this fails. If it could not, BEGIN will tell.
	_ = t.rollback()
	return t.sent && t.w.kept(t.number)
}

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
	for _, d := range t.drafts {
		if d.changed {
			win.publish(d)
		}
	}
	for _, id := range t.gone {
		win.forget(id)
	}
	win.evict()
	for id, d := range t.drafts {
		if d.changed {
			t.w.s.bells.ring(id)
		}
	}
}

// pages is about how much the transaction added to the write-ahead log.
func (t *tx) pages() int64 { return 4 + 3*int64(len(t.drafts)) + t.bytes/pageSize }

// draft returns the run as this transaction sees it; nil where there is none.
func (t *tx) draft(id ulid.ULID) (*draft, error) {
	if d := t.drafts[id]; d != nil {
		return d, nil
	}
	if r := t.w.s.window.runs[id]; r != nil {
		d := &draft{row: r.row, owner: r.owner, run: *r.view.Load().run}
		t.drafts[id] = d
		return d, nil
	}
	return t.load(id)
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
	if d.run, err = row.run(); err != nil {
		return nil, err
	}
	t.drafts[id] = d
	return d, nil
}

// The rows of one INSERT: as many as pay, and one for what is left over.
const insertRows = 64

var (
	insertOne  = insertChunks(1)
	insertMany = insertChunks(insertRows)
)

func insertChunks(n int) string {
	return `INSERT INTO chunks (run, pos, "end", data) VALUES (?, ?, ?, ?)` + strings.Repeat(", (?, ?, ?, ?)", n-1)
}

// add gives chunks their positions and offsets behind those of d.
func (t *tx) add(d *draft, chunks [][]byte) {
	for _, data := range chunks {
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		d.run.Bytes += int64(len(data))
		t.bytes += int64(len(data))
		d.added = append(d.added, buffer.Chunk{Pos: d.run.Head, End: d.run.Bytes, Data: data})
		t.chunks = append(t.chunks, d.row, d.run.Head, d.run.Bytes, data)
		d.run.Head++
	}
}

// insertChunks writes the chunks of all runs of the batch together.
func (t *tx) insertChunks() error {
	const width = 4
	for len(t.chunks) > 0 {
		query, n := insertOne, width
		if len(t.chunks) >= insertRows*width {
			query, n = insertMany, insertRows*width
		}
		if _, err := t.exec(query, t.chunks[:n]...); err != nil {
			return fmt.Errorf("insert chunks: %w", err)
		}
		t.chunks = t.chunks[n:]
	}
	return nil
}
