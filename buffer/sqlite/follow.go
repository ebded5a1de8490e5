package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// The times of a follower.
const (
	// followEvery is between two looks at whether the file has changed, which cost some microseconds.
	followEvery = 5 * time.Millisecond
	// meetEvery counts looks between two at who else lives, and what became of this owner's runs.
	meetEvery = 10
	// wakeEvery counts looks between two at which all wake who watch a run that this process does not know:
	// it may have been created and ended between two looks.
	wakeEvery = 200
)

// follower is what this process knows of the live runs of others that have the log open: it polls, but only
// while there are any. Nobody else polls.
//
//	another's COMMIT ──▶ data_version ──▶ its runs' new arrivals ──▶ views ──▶ bells
//	                                      an owner that died ──▶ its runs are sealed
//	                                      our runs that another has ended ──▶ forgotten
type follower struct {
	s    *Store
	conn *conn
	due  chan struct{} // holds a token when there may be another process
	quit chan struct{}

	mu        sync.RWMutex
	following bool
	runs      map[ulid.ULID]*foreign // put in place as a whole by the goroutine, which reads it without the lock
	looks     int64                  // how many have begun
	// doubted are the runs of which somebody here knows more than a look that has begun, with the number of
	// that look: until the next, they are read from the file.
	doubted map[ulid.ULID]int64

	// The goroutine's own.
	version int64 // of the file, at the last look
	last    int64 // the newest arrival that was taken
	stale   bool  // the file has changed since this owner's runs were compared with it
}

// foreign is a live run of another owner, as it was at the last look. It is immutable.
type foreign struct {
	view
	owner int64
}

func newFollower(ctx context.Context, s *Store) (*follower, error) {
	c, err := openConn(ctx, openPool(s.dir.file(), 1, readerPragmas))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	f := &follower{s: s, conn: c, due: make(chan struct{}, 1), quit: make(chan struct{}), doubted: map[ulid.ULID]int64{}}
	f.notice() // those that were here before
	return f, nil
}

// notice is told when there may be another process.
func (f *follower) notice() {
	if f == nil { // a log that is only read has none
		return
	}
	select {
	case f.due <- struct{}{}:
	default: // it knows
	}
}

func (f *follower) stop() { close(f.quit) }

func (f *follower) close() error { return f.conn.close() }

// get is what is known of another's live run; nil for any other.
func (f *follower) get(id ulid.ULID) *view {
	if f == nil {
		return nil
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	r := f.runs[id]
	if _, doubted := f.doubted[id]; r == nil || doubted {
		return nil
	}
	return &r.view
}

// doubt is told of a run of another that this process has changed, or has read from the file: nobody is told
// less from now on.
func (f *follower) doubt(id ulid.ULID) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.following {
		f.doubted[id] = f.looks
	}
}

// read answers from memory where it can.
func (f *follower) read(id ulid.ULID, from int64, max int) (buffer.Page, bool) {
	v := f.get(id)
	if v == nil {
		return buffer.Page{}, false
	}
	return v.page(from, max)
}

func (f *follower) run() {
	for {
		select {
		case <-f.quit:
			return
		case <-f.due:
			f.follow()
		}
	}
}

// follow looks until there is no other process.
func (f *follower) follow() {
	f.begin()
	defer f.end()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		alone, err := f.look(n%meetEvery == 0)
		if errors.Is(err, buffer.ErrClosed) {
			return
		}
		if err != nil { // the next look may do better, and readers ask the file meanwhile
			f.s.log.Warn("other processes not followed", zap.Error(err))
		}
		if n%wakeEvery == 0 {
			f.s.bells.wakeAll()
		}
		if alone {
			return
		}
		select {
		case <-f.quit:
			return
		case <-tick.C:
		}
	}
}

func (f *follower) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.following = true
}

// end forgets what was known, and has those who waited for more ask the file.
func (f *follower) end() {
	f.mu.Lock()
	f.following, f.runs = false, nil
	clear(f.doubted)
	f.mu.Unlock()
	f.version = 0
	f.s.bells.wakeAll()
}

// look is one look at the file. Every so often it is one at the others too, before, so that nothing that the dead
// have done is missed; alone says that there are none.
func (f *follower) look(meet bool) (alone bool, err error) {
	var living map[int64]bool
	if meet {
		if living, err = f.s.owners.others(); err != nil {
			return false, err
		}
		if len(living) == 0 && !f.s.recovered.Load() { // the start has nobody to follow, and recovers what there is
			return true, nil
		}
	}
	var version int64
	if _, err := f.conn.scan("PRAGMA data_version", nil, &version); err != nil {
		return false, err
	}
	if version != f.version {
		if err := f.catchUp(); err != nil {
			return false, err
		}
		f.stale = true
		f.version = version
	}
	if !meet {
		return false, nil
	}
	return f.meet(living)
}

// meet seals the runs of those that have died, and takes note of what others have done to this owner's.
func (f *follower) meet(living map[int64]bool) (alone bool, err error) {
	ctx := context.Background()
	for _, r := range f.runs {
		if !living[r.owner] && f.s.recovered.Load() { // else the start does it in a moment
			if _, err := f.s.Recover(ctx); err != nil {
				return false, err
			}
			break
		}
	}
	if f.stale {
		if err := f.s.queue.do(ctx, compare{}, 0, 0); err != nil {
			return false, err
		}
		f.stale = false
	}
	return len(living) == 0, nil
}

const (
	selectForeign = `SELECT run, id, owner, state, head, bytes FROM runs WHERE ended IS NULL AND owner <> ?`
	// selectNews are what others' live runs have that is in no segment yet.
	selectNews = `SELECT a.run, a.pos, a.start, a.sizes, a.data FROM arrivals a JOIN runs r ON r.run = a.run
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
			f.s.bells.ring(id)
		}
	}
	for id := range was {
		if runs[id] == nil {
			f.s.bells.ring(id)
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
		err := r.Scan(&run, &p.pos, &p.start, &p.sizes, &p.data)
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
	run, chunks := *was.run, was.chunks
	if cut := row.head - was.first; cut > 0 {
		chunks = slices.Clone(chunks[min(cut, int64(len(chunks))):]) // else the array would keep all
	}
	for _, p := range arrived {
		if next := row.head + int64(len(chunks)); p.pos != next {
			return nil, fmt.Errorf("no chunk %d, but %d", next, p.pos)
		}
		var err error
		if chunks, err = p.unpack(chunks); err != nil {
			return nil, err
		}
	}
	run.Head, run.Bytes = row.head+int64(len(chunks)), row.bytes+span(chunks)
	return &foreign{view: view{run: &run, first: row.head, chunks: chunks}, owner: row.owner}, nil
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
	run, err := r.run()
	if err != nil {
		return nil, err
	}
	return &foreign{view: view{run: &run, first: row.head}, owner: row.owner}, nil
}

// compare makes memory agree with what others have done to this owner's runs: those that they have ended are
// forgotten, and so are all that have ended, since they may release them.
type compare struct{}

const selectOwn = `SELECT run FROM runs WHERE ended IS NULL AND owner = ?`

func (compare) apply(t *tx) (refusal, err error) {
	live := map[int64]bool{}
	err = t.w.conn.each(selectOwn, []any{t.w.owner}, func(rows *sql.Rows) error {
		var row int64
		err := rows.Scan(&row)
		live[row] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read own runs: %w", err)
	}
	known := maps.Clone(t.w.s.window.runs) // what is looked up may be forgotten at once
	for id, r := range known {
		switch {
		case r.view.Load().run.State.Ended():
			t.gone = append(t.gone, id)
		case !live[r.row]:
			if _, err := t.draft(id); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
