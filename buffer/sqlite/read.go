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
	// The offset where the page begins is the end of the chunk before it; it is sought in the file,
	// since the first chunk of the page must come however large it is.
	selectChunks = `SELECT pos, "end", data FROM chunks
		WHERE run = ?1 AND pos >= ?2 AND (pos = ?2 OR "end" <= ?3 + coalesce((SELECT "end" FROM chunks WHERE run = ?1 AND pos = ?2 - 1), 0))
		ORDER BY pos LIMIT ?4`
)

// Read implements buffer.Store. The page's memory is shared with other readers.
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
	var page buffer.Page
	err := s.snapshot(ctx, func(r reading) (err error) {
		page, err = r.page(ctx, id, from, max)
		return err
	})
	return page, err
}

// Get implements buffer.Store.
func (s *Store) Get(ctx context.Context, id ulid.ULID) (buffer.Run, error) {
	var run buffer.Run
	err := s.snapshot(ctx, func(r reading) error {
		row, found, err := r.run(ctx, id)
		if err != nil {
			return err
		}
		run = found
		run.Attempts, err = r.attempts(ctx, row.row)
		return err
	})
	return run, err
}

// reading is one state of the file, and what is asked of it often.
type reading struct {
	tx *sql.Tx
	q  *queries
}

// queries are prepared once and live on each connection that has used them.
type queries struct {
	run, chunks, attempts *sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB) (*queries, error) {
	q := &queries{}
	for text, stmt := range map[string]**sql.Stmt{selectRun: &q.run, selectChunks: &q.chunks, selectAttempts: &q.attempts} {
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
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return s.readError(ctx, err)
	}
	defer tx.Rollback() // it has only read
	return s.readError(ctx, f(reading{tx: tx, q: s.queries}))
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

func (r reading) page(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	row, run, err := r.run(ctx, id)
	if err != nil {
		return buffer.Page{}, err
	}
	page := buffer.Page{Run: run}
	switch {
	case row.swept.Valid:
		return page, buffer.ErrReleased
	case from > run.Head:
		return page, buffer.ErrAhead
	case from == run.Head:
		return page, nil
	}
	if page.Chunks, err = r.chunks(ctx, row.row, from, max); err != nil {
		return buffer.Page{}, err
	}
	if len(page.Chunks) > 0 && page.Chunks[0].Pos == from {
		return page, nil
	}
	page.Chunks = nil
	if run.State == buffer.Released {
		return page, buffer.ErrReleased // being swept, from the beginning on
	}
	return page, fmt.Errorf("run %s has no chunk %d", id, from)
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
	run, err := row.run()
	return row, run, err
}

func (r reading) chunks(ctx context.Context, row, from int64, max int) ([]buffer.Chunk, error) {
	rows, err := r.tx.StmtContext(ctx, r.q.chunks).QueryContext(ctx, row, from, max, pageChunks)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err below says whether all came
	var chunks []buffer.Chunk
	for rows.Next() {
		var c buffer.Chunk
		if err := rows.Scan(&c.Pos, &c.End, &c.Data); err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
	}
	return chunks, rows.Err()
}

func (r reading) attempts(ctx context.Context, row int64) ([]buffer.Attempt, error) {
	rows, err := r.tx.StmtContext(ctx, r.q.attempts).QueryContext(ctx, row)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err below says whether all came
	var attempts []buffer.Attempt
	for rows.Next() {
		a, err := scanAttempt(rows)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, a)
	}
	return attempts, rows.Err()
}
