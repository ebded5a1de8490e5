package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
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
	if _, doubted := f.doubted[id]; r == nil || doubted || r.key.usable() != nil {
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
	failing := false
	for n := 0; ; n++ {
		alone, err := f.look(n%meetEvery == 0)
		if errors.Is(err, buffer.ErrClosed) {
			return
		}
		if err != nil && !failing { // the next look may do better, and readers ask the file meanwhile
			f.s.log.Warn("other processes not followed", zap.Error(err))
		}
		failing = err != nil
		if n%wakeEvery == 0 {
			f.s.bells.RingAll()
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
	f.version, f.last = 0, 0
	f.s.bells.RingAll()
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
