// Package sqlite is the embedded engine: runs in one SQLite file of a data folder that belongs to
// one process, and to more while one takes over from another.
//
//	Create, Append, Attempt, Seal, Release, Sweep, Recover
//	   │ a request each
//	   ▼
//	queue ──▶ writer: one transaction for all that has arrived ── COMMIT ──▶ window ──▶ bells ──▶ answers
//	                                                                │
//	Read ◀── window, or else a reader's own snapshot of the file ◀──┘
//
// The writer is the only one of its process that changes the file, and the only one that changes the window;
// readers take no lock that it holds while it works. Of several processes each has a lock that says that it
// lives (owners), they write in turns (turn), and each follows what the others commit (follower).
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
	driver "modernc.org/sqlite"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/bell"
)

// Config says where the log is and how it is kept.
type Config struct {
	Dir    string           // the data folder; created where it is missing
	Sync   string           // "full", the default: a commit survives a power cut. "normal": it survives a kill only
	Log    *zap.Logger      // nil is silent
	Window int64            // bytes of recent chunks kept in memory over all runs; 0 is DefaultWindow, below 0 none
	Now    func() time.Time // nil is time.Now
	Keys   []Key            // the first encrypts new runs, the others open what they encrypted; none: new runs stay in the clear
	Join   bool             // open a folder that other processes have open too

	// Fault is the seam where tests make the log fail, hang or end the process, at the points named by
	// Point. nil in service.
	Fault func(p Point) error

	lazy bool // never flush: only for tests, which cannot cut the power
}

// DefaultWindow is the memory for recent chunks: some seconds of a busy service, so that a reader
// who keeps up never asks the file.
const DefaultWindow = 64 << 20

// readers is the number of connections that read at the same time: replays queue behind each other
// instead of taking the processors from the writer.
const readers = 4

// Store is a buffer.Store in one data folder.
type Store struct {
	cfg      Config
	log      *zap.Logger
	dir      *folder
	file     *identity
	keys     *keyring
	turn     turn
	read     *sql.DB
	queries  *queries
	window   *window
	bells    *bell.Bells
	queue    *queue
	writer   *writer
	check    *checkpointer
	owners   *owners
	follower *follower

	recovered atomic.Bool // once: from then on the runs of owners that die are this one's to seal

	done  sync.WaitGroup
	close sync.Once
	ended error // what Close returns, each time
}

var _ buffer.Store = (*Store)(nil)

// Open takes the folder for this process, brings its schema up to date and starts the writer. It
// refuses a folder that another process holds (ErrInUse) unless it is to join that, that was written by a
// newer version (ErrNewer), that is not on a local file system (ErrNetwork), that cannot be written, or with runs
// that the keys do not open (ErrKey), and leaves all of them as they are, but for the schema in the last case.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	// A commit needs its bytes on disk and the file's size, not the time of the change as well. Where the
	// call does not exist it stays as it is.
	_, _ = driver.Fdatasync(true)
	dir, err := lock(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, cfg, dir)
	if err != nil {
		_ = dir.close() // nothing was written; the first error is the one to tell
		return nil, fmt.Errorf("folder %s: %w", cfg.Dir, err)
	}
	s.done.Go(s.writer.run)
	s.done.Go(s.check.run)
	if err := s.queue.do(ctx, checkpoint{}, 0, 0); err != nil { // which puts the stamp of this opening into the file
		s.log.Warn("checkpoint failed", zap.Error(err))
	}
	s.done.Go(s.follower.run)
	s.log.Info("log opened", zap.String("folder", cfg.Dir), zap.String("sync", cfg.Sync), zap.Int64("owner", s.writer.owner))
	return s, nil
}

func lock(ctx context.Context, cfg Config) (*folder, error) {
	if cfg.Join {
		return joinFolder(ctx, cfg.Dir)
	}
	return openFolder(cfg.Dir)
}

func (c Config) complete() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("no data folder")
	}
	if c.Sync == "" {
		c.Sync = "full"
	}
	if c.Sync != "full" && c.Sync != "normal" {
		return c, fmt.Errorf("sync %q: want full or normal", c.Sync)
	}
	if c.lazy {
		c.Sync = "off"
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Fault == nil {
		c.Fault = func(Point) error { return nil }
	}
	return c, nil
}

func open(ctx context.Context, cfg Config, dir *folder) (_ *Store, err error) {
	keys, err := newKeyring(cfg.Keys)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, log: cfg.Log, dir: dir, keys: keys, window: newWindow(cfg.Window), bells: bell.New(), queue: newQueue()}
	if err := refuseNewer(ctx, dir.file()); err != nil {
		return nil, err
	}
	if s.turn, err = openTurn(dir.path); err != nil {
		return nil, err
	}
	s.turn.take()
	err = migrate(ctx, dir.file(), cfg.Sync)
	s.turn.give()
	if err != nil {
		_ = s.turn.close() // nothing was written; the first error is the one to tell
		return nil, err
	}
	s.read = openPool(dir.file(), readers, readerPragmas)
	for _, part := range []func() error{
		func() (err error) { s.queries, err = prepare(ctx, s.read); return err },
		func() error { return keys.covers(ctx, s.read) },
		func() (err error) { s.check, err = newCheckpointer(ctx, s); return err },
		func() (err error) { s.writer, err = newWriter(ctx, s); return err },
		func() (err error) { s.file, err = identify(dir.file()); return err },
		func() (err error) { s.owners, err = claimOwner(dir.path, s.writer.owner); return err },
		func() (err error) { s.follower, err = newFollower(ctx, s); return err },
		dir.share,
	} {
		if err := part(); err != nil {
			_ = s.closeFiles() // as above
			return nil, err
		}
	}
	return s, nil
}

// Close finishes what was accepted, says in the file that this owner has ended, and gives the
// folder up. Runs that are live stay so until the next owner recovers them. Every bell rings.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		s.check.stop()
		s.follower.stop()
		s.done.Wait()
		s.window.ringAll()
		s.bells.Close()
		s.ended = errors.Join(s.writer.end(), s.closeFiles(), s.dir.close())
		s.log.Info("log closed", zap.Int64("owner", s.writer.owner), zap.Error(s.ended))
	})
	return s.ended
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.check != nil {
		errs = append(errs, s.check.close())
	}
	if s.follower != nil {
		errs = append(errs, s.follower.close())
	}
	if s.owners != nil { // only now: nothing is written in its name any more
		errs = append(errs, s.owners.leave())
	}
	return errors.Join(append(errs, s.read.Close(), s.file.close(), s.turn.close())...)
}

// Notice has the store look for another process that has just opened the folder.
func (s *Store) Notice() { s.follower.notice() }

// Watch implements buffer.Store. Within one process no wake-up is lost.
func (s *Store) Watch(id ulid.ULID) (changed <-chan struct{}, stop func()) {
	if v := s.window.get(id); v != nil {
		return v.bell, func() {}
	}
	changed, stop = s.bells.Watch(id)
	if v := s.window.get(id); v != nil { // it came in between, and perhaps rang before anybody listened
		stop()
		return v.bell, func() {}
	}
	return changed, stop
}

// Wake implements buffer.Store.
func (s *Store) Wake(id ulid.ULID) {
	s.window.wake(id)
	s.bells.Ring(id)
}

// now is the clock in the resolution of the file, so that what is in memory equals what is stored.
func (s *Store) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

// exists tells a missing file from one that cannot be looked at.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
