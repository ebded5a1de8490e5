package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// pageChunks bounds a page that is read from the file, however small its chunks are.
const pageChunks = 8192

const (
	// The first row is the one that holds the position.
	selectSegments = `SELECT pos, start, sizes, keep(?3, data), cipher FROM segments
		WHERE run = ?1 AND pos >= coalesce((SELECT max(pos) FROM segments WHERE run = ?1 AND pos <= ?2), 0) ORDER BY pos`
	countArrivals    = `SELECT coalesce(sum(json_array_length(sizes)), 0), coalesce(sum(length(data)), 0) FROM arrivals WHERE run = ? AND pos >= ?`
	selectArrivalsOf = `SELECT pos, start, sizes, keep(?3, data), cipher FROM arrivals WHERE run = ?1 AND pos >= ?2 ORDER BY id`
)

// Read implements buffer.Store. A page from memory is shared with other readers; one from the file is the caller's
// until Recycle.
func (s *Store) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	if from < 0 {
		return buffer.Page{}, fmt.Errorf("read position %d: they count from 0", from)
	}
	if s.queue.isClosed() {
		return buffer.Page{}, buffer.ErrClosed
	}
	if page, ok := s.window.read(id, from, max); ok {
		return page, nil
	}
	if page, ok := s.follower.read(id, from, max); ok {
		return page, nil
	}
	page, err := s.readFile(ctx, id, from, max)
	return *page, err
}

// readFile is Read for what memory has not. The page is not on the stack of a reader that waits.
func (s *Store) readFile(ctx context.Context, id ulid.ULID, from int64, max int) (*buffer.Page, error) {
	page := new(buffer.Page)
	seen := s.seen(id) // before the snapshot, which then has all of it
	if seen != nil && from > seen.run.Head {
		seen = nil // a reader of another's run may know more than was told
	}
	err := s.snapshot(ctx, func(r reading) (err error) {
		*page, err = r.page(ctx, id, seen, from, max)
		return err
	})
	s.told(page.Run, seen)
	return page, err
}

// told notes that somebody was told of a run as the file has it.
func (s *Store) told(run buffer.Run, seen *view) {
	if seen == nil && run.State.Live() { // another's
		s.follower.doubt(run.ID)
		s.follower.notice()
	}
}

// seen is what memory has of a live run, this process's or another's, or of one that has just ended; nil
// where it has none.
func (s *Store) seen(id ulid.ULID) *view {
	if v := s.window.get(id); v != nil {
		return v
	}
	return s.follower.get(id)
}

// Get implements buffer.Store.
func (s *Store) Get(ctx context.Context, id ulid.ULID) (buffer.Run, error) {
	seen := s.seen(id)
	var run buffer.Run
	err := s.snapshot(ctx, func(r reading) error {
		row, found, err := r.run(ctx, id)
		if err != nil {
			return err
		}
		if run, _, err = r.grown(ctx, row, found, seen); err != nil {
			return err
		}
		run.Attempts, err = r.attempts(ctx, row)
		return err
	})
	s.told(run, seen)
	return run, err
}

// reading is one state of the file, and what is asked of it often.
type reading struct {
	tx   *sql.Tx
	q    *queries
	keys *keyring
}

// queries are prepared once and live on each connection that has used them.
type queries struct {
	run, segments, arrivals, attempts *sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB) (*queries, error) {
	q := &queries{}
	for text, stmt := range map[string]**sql.Stmt{selectRun: &q.run, selectSegments: &q.segments, selectArrivalsOf: &q.arrivals, selectAttempts: &q.attempts} {
		var err error
		if *stmt, err = db.PrepareContext(ctx, text); err != nil {
			return nil, fmt.Errorf("prepare: %w", err) // the pool's Close ends those that were prepared
		}
	}
	return q, nil
}

// snapshot runs f on one state of the file.
func (s *Store) snapshot(ctx context.Context, f func(reading) error) error {
	if s.queue.isClosed() {
		return buffer.ErrClosed
	}
	if err := s.file.present(); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return s.readError(ctx, err)
	}
	defer tx.Rollback() // it has only read
	return s.readError(ctx, f(reading{tx: tx, q: s.queries, keys: s.keys}))
}

// readError tells a read that was cut off by its caller or by Close from one that failed.
func (s *Store) readError(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, buffer.ErrNotFound), errors.Is(err, buffer.ErrAhead), errors.Is(err, buffer.ErrReleased):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case s.queue.isClosed():
		return buffer.ErrClosed
	}
	return fmt.Errorf("read log: %w", err)
}

func (r reading) page(ctx context.Context, id ulid.ULID, seen *view, from int64, max int) (buffer.Page, error) {
	row, run, err := r.run(ctx, id)
	if err != nil {
		return buffer.Page{}, err
	}
	run, recent, err := r.grown(ctx, row, run, seen)
	if err != nil {
		return buffer.Page{}, err
	}
	page := buffer.Page{Run: run}
	switch {
	case row.swept.Valid:
		return page, buffer.ErrReleased
	case from > run.Head:
		return page, buffer.ErrAhead
	case from == run.Head, max <= 0:
		return page, nil
	}
	err = row.key.usable()
	if errors.Is(err, errDestroyed) {
		return page, buffer.ErrReleased // being swept, its data key first
	}
	if err == nil {
		err = r.chunks(ctx, row, &page, from, max)
	}
	if err != nil {
		return buffer.Page{}, fmt.Errorf("run %s: %w", id, err)
	}
	if all := follow(page.Chunks, recent, from, max); len(all) > len(page.Chunks) {
		page.Chunks, page.Joined = all, nil
	}
	if len(page.Chunks) > 0 {
		return page, nil
	}
	if run.State == buffer.Released {
		return page, buffer.ErrReleased // being swept, from the beginning on
	}
	return page, fmt.Errorf("run %s has no chunk %d", id, from)
}

// follow adds to a page what of recent comes after it, and fits.
func follow(page, recent []buffer.Chunk, from int64, max int) []buffer.Chunk {
	next := from + int64(len(page))
	if len(recent) == 0 || next < recent[0].Pos || next > recent[len(recent)-1].Pos {
		return page
	}
	page = append(page, recent[next-recent[0].Pos:]...)
	return page[:fit(page, max)]
}

// grown is a run that was read from the file as it is with what has arrived since its last segment, and
// its most recent chunks. Memory knows them of this process's runs, and of another's that it follows, as
// seen says; else they are read from the file. Without the run's data key they can be counted.
func (r reading) grown(ctx context.Context, row runRow, run buffer.Run, seen *view) (buffer.Run, []buffer.Chunk, error) {
	if !run.State.Live() {
		return run, nil, nil
	}
	if seen != nil {
		run.Head, run.Bytes = seen.run.Head, seen.run.Bytes
		return run, seen.chunks, nil
	}
	if row.key.usable() != nil {
		var chunks, bytes int64
		err := r.tx.QueryRowContext(ctx, countArrivals, row.row, run.Head).Scan(&chunks, &bytes)
		run.Head, run.Bytes = run.Head+chunks, run.Bytes+bytes
		return run, nil, err
	}
	m := new(pageMemory) // not from the pool: these chunks are appended to the page, and nobody gives them back
	err := r.pieces(ctx, row.key, r.q.arrivals, row.row, run.Head, m, func() bool { return true })
	arrived := m.chunks
	run.Head += int64(len(arrived))
	run.Bytes += span(arrived)
	return run, arrived, err
}

func (r reading) run(ctx context.Context, id ulid.ULID) (runRow, buffer.Run, error) {
	var row runRow
	err := r.tx.StmtContext(ctx, r.q.run).QueryRowContext(ctx, id.String()).Scan(row.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return row, buffer.Run{}, buffer.ErrNotFound
	}
	if err != nil {
		return row, buffer.Run{}, err
	}
	run, err := row.open(r.keys)
	return row, run, err
}

// chunks reads those of the page's run from position from on, none at or after its head: at least one where it
// is there, then what fits.
func (r reading) chunks(ctx context.Context, row runRow, page *buffer.Page, from int64, max int) error {
	after := func(chunks []buffer.Chunk) []buffer.Chunk {
		if len(chunks) == 0 || chunks[0].Pos > from {
			return nil
		}
		return chunks[min(from-chunks[0].Pos, int64(len(chunks))):]
	}
	last := 0
	m := takePageMemory(expected(&page.Run, from, max))
	err := r.pieces(ctx, row.key, r.q.segments, row.row, from, m, func() bool {
		chunks, piece := after(m.chunks), m.chunks[last:]
		last = len(m.chunks)
		// Another one like the last would have to fit: a row that is read for a part of it is read again.
		return len(chunks) == 0 || len(chunks) < pageChunks && span(chunks)+span(piece) <= int64(max)
	})
	if err != nil {
		return err // m is garbage
	}
	chunks := after(m.chunks)
	before := len(m.chunks) - len(chunks)
	chunks = chunks[:min(int64(len(chunks)), page.Run.Head-from, pageChunks)]
	n := fit(chunks, max)
	page.Chunks, page.Joined, page.Recycle = chunks[:n:n], m.joined(before, n), m.give
	return nil
}

// expected is how many chunks a page may have, if they are all of one size, and how many bytes, and as many again
// as a segment may hold before it: room for them is made at once.
func expected(run *buffer.Run, from int64, max int) (chunks, bytes int64) {
	size := run.Bytes/run.Head + 1
	chunks = min(int64(max)/size, run.Head-from, pageChunks) + min(segmentBytes/size, from, segmentChunks) + 1
	return chunks, min(int64(max)+segmentBytes, run.Bytes)
}

// pieces reads rows from position from on until more says that it is enough, and adds what they hold to m.
func (r reading) pieces(ctx context.Context, key *dataKey, query *sql.Stmt, run, from int64, m *pageMemory, more func() bool) error {
	number := beingRead.begin(m)
	defer beingRead.end(number)
	rows, err := r.tx.StmtContext(ctx, query).QueryContext(ctx, run, from, number)
	if err != nil {
		return err
	}
	defer rows.Close() // again, where all went well
	for more() && rows.Next() {
		if err := m.scan(rows, key); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (r reading) attempts(ctx context.Context, row runRow) ([]buffer.Attempt, error) {
	rows, err := r.tx.StmtContext(ctx, r.q.attempts).QueryContext(ctx, row.row)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err below says whether all came
	var attempts []buffer.Attempt
	for rows.Next() {
		a, err := scanAttempt(rows, row.key)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, a)
	}
	return attempts, rows.Err()
}
