package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// foreign is a live run of another owner, as it was at the last look. It is immutable.
type foreign struct {
	view
	owner int64
	key   *dataKey
}

const (
	selectForeign = `SELECT run, id, owner, state, head, bytes FROM runs WHERE ended IS NULL AND owner <> ?`
	// selectNews are what others' live runs have that is in no segment yet.
	selectNews = `SELECT a.run, a.pos, a.start, a.sizes, a.data, a.cipher FROM arrivals a JOIN runs r ON r.run = a.run
		WHERE a.id > ? AND r.ended IS NULL AND r.owner <> ? AND a.pos >= r.head ORDER BY a.id`
)

// foreignRow is a run as selectForeign has it.
type foreignRow struct {
	row, owner  int64
	id          string
	state       buffer.State
	head, bytes int64 // of its segments
}

// catchUp takes what others have committed since the last look, in one snapshot, and rings for it.
func (f *follower) catchUp() (err error) {
	f.mu.Lock()
	f.looks++
	f.mu.Unlock()
	if _, err := f.conn.exec("BEGIN"); err != nil {
		return err
	}
	runs, last, err := f.news()
	if _, err2 := f.conn.exec("ROLLBACK"); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	was := f.runs
	f.mu.Lock()
	f.runs = runs
	maps.DeleteFunc(f.doubted, func(_ ulid.ULID, look int64) bool { return look < f.looks })
	f.mu.Unlock()
	f.last = last
	for id, r := range runs {
		if was[id] != r {
			f.s.bells.Ring(id)
		}
	}
	for id := range was {
		if runs[id] == nil {
			f.s.bells.Ring(id)
		}
	}
	return nil
}

func (f *follower) news() (runs map[ulid.ULID]*foreign, last int64, err error) {
	me := f.s.writer.owner
	var rows []foreignRow
	err = f.conn.each(selectForeign, []any{me}, func(r *sql.Rows) error {
		var row foreignRow
		err := r.Scan(&row.row, &row.id, &row.owner, &row.state, &row.head, &row.bytes)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read others' runs: %w", err)
	}
	pieces := map[int64][]piece{}
	err = f.conn.each(selectNews, []any{f.last, me}, func(r *sql.Rows) error {
		var run int64
		var p piece
		err := r.Scan(&run, &p.pos, &p.start, &p.sizes, &p.data, &p.cipher)
		pieces[run] = append(pieces[run], p)
		return err
	})
	if err == nil {
		_, err = f.conn.scan(selectLastArrival, nil, &last)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read others' arrivals: %w", err)
	}
	runs = make(map[ulid.ULID]*foreign, len(rows))
	for _, row := range rows {
		id, err := ulid.ParseStrict(row.id)
		if err != nil {
			return nil, 0, err
		}
		r, err := f.next(id, row, pieces[row.row])
		if err != nil { // its readers ask the file, and are told
			f.s.log.Error("another's run is not followed", zap.String("run", row.id), zap.Error(err))
			continue
		}
		runs[id] = r
	}
	return runs, max(f.last, last), nil
}

// next is a run as it is now: what was known of it, less what is in a segment by now, and what has arrived.
func (f *follower) next(id ulid.ULID, row foreignRow, arrived []piece) (*foreign, error) {
	was := f.runs[id]
	if was == nil || was.run.State != row.state {
		loaded, err := f.load(row)
		if err != nil {
			return nil, err
		}
		was = loaded
	} else if row.head <= was.first && len(arrived) == 0 {
		return was, nil
	}
	if was.key.usable() != nil { // its readers ask the file, and are told
		return &foreign{view: view{run: was.run, first: row.head}, owner: row.owner, key: was.key}, nil
	}
	run, chunks := *was.run, was.chunks
	if cut := row.head - was.first; cut > 0 {
		chunks = slices.Clone(chunks[min(cut, int64(len(chunks))):]) // else the array would keep all
	}
	for _, p := range arrived {
		if next := row.head + int64(len(chunks)); p.pos != next {
			return nil, fmt.Errorf("no chunk %d, but %d", next, p.pos)
		}
		p, err := p.decrypt(was.key)
		if err != nil {
			return nil, err
		}
		if chunks, err = p.unpack(chunks); err != nil {
			return nil, err
		}
	}
	run.Head, run.Bytes = row.head+int64(len(chunks)), row.bytes+span(chunks)
	return &foreign{view: view{run: &run, first: row.head, chunks: chunks}, owner: row.owner, key: was.key}, nil
}

// load reads all about a run but its chunks.
func (f *follower) load(row foreignRow) (*foreign, error) {
	var r runRow
	ok, err := f.conn.scan(selectRun, []any{row.id}, r.dest()...)
	if err == nil && !ok {
		err = errors.New("it has no call")
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	run, err := r.open(f.s.keys)
	if err != nil {
		return nil, err
	}
	if err := r.key.usable(); err != nil {
		f.s.log.Warn("another's run cannot be read here", zap.String("run", row.id), zap.Error(err))
	}
	return &foreign{view: view{run: &run, first: row.head}, owner: row.owner, key: r.key}, nil
}
