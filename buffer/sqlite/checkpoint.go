package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

const (
	pageSize = 4096
	// checkpointPages is the size of the write-ahead log, 16 MiB, at which it is copied back into the file.
	checkpointPages = 16 << 20 / pageSize
	// behindPages may be written from one checkpoint's beginning to the next: then the writer waits.
	behindPages = checkpointPages * 3 / 2
)

// checkpointer keeps the write-ahead log bounded without stalling the writer: it copies most of it on
// a connection of its own while the writer goes on, and then has the writer copy the little that
// came meanwhile, so that the log starts again from its beginning. Both steps are PASSIVE: they wait
// for no reader. A reader that stays on an old snapshot only makes the log grow for as long.
type checkpointer struct {
	s    *Store
	conn *conn

	pages   atomic.Int64  // written since the last checkpoint has begun, about
	copying sync.Mutex    // held while one is under way on this connection
	due     chan struct{} // holds one token when it is time
	quit    chan struct{}

	missed int // the writer's own: how often since the log last began anew a reader was in the way
}

func newCheckpointer(ctx context.Context, s *Store) (*checkpointer, error) {
	c, err := openConn(ctx, openPool(s.dir.file(), 1, fixerPragmas(s.cfg.Sync)))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &checkpointer{s: s, conn: c, due: make(chan struct{}, 1), quit: make(chan struct{})}, nil
}

// wrote is told by the writer after each commit.
func (c *checkpointer) wrote(pages int64) {
	if c.pages.Add(pages) < checkpointPages {
		return
	}
	select {
	case c.due <- struct{}{}:
	default: // it knows
	}
}

func (c *checkpointer) run() {
	for {
		select {
		case <-c.quit:
			return
		case <-c.due:
		}
		err := c.copy()
		if err == nil {
			err = c.s.queue.do(context.Background(), checkpoint{}, 0, 0)
		}
		if err != nil {
			// The log is larger than it should be, and nothing else: the next round tries again.
			c.s.log.Warn("checkpoint failed", zap.Error(err))
		}
	}
}

func (c *checkpointer) copy() error {
	c.copying.Lock()
	defer c.copying.Unlock()
	c.pages.Store(0)
	_, err := c.s.checkpoint(c.conn, passive)
	return err
}

// finish is the writer's share. Where a reader was in the way twice, four times, and so on, it waits for it.
func (c *checkpointer) finish(w *conn) error {
	whole, err := c.s.checkpoint(w, passive)
	if err != nil {
		return err
	}
	if whole {
		c.missed = 0
		return nil
	}
	if c.missed++; c.missed < 2 || c.missed&(c.missed-1) != 0 {
		return nil
	}
	if err := w.once(readerPatience); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if whole, err = c.s.checkpoint(w, restart); whole {
		c.missed = 0
	}
	return errors.Join(err, w.once("PRAGMA "+busyTimeout))
}

// keepUp has the writer, between two transactions, wait where the checkpointer is behind, and do on w, its own
// connection, what is left of the work.
func (c *checkpointer) keepUp(w *conn) error {
	if c.pages.Load() < behindPages {
		return nil
	}
	c.copying.Lock()
	defer c.copying.Unlock()
	c.pages.Store(0)
	return c.finish(w)
}

func (c *checkpointer) stop() { close(c.quit) }

func (c *checkpointer) close() error { return c.conn.close() }

// checkpoint is the writer's own share, after its batch. It puts a new stamp into the file.
type checkpoint struct{}

func (checkpoint) apply(t *tx) (refusal, err error) {
	t.checkpoint = true
	return nil, t.restamp()
}

// How a checkpoint treats readers. restart waits for them, for as long as readerPatience says.
const (
	passive        = "PRAGMA wal_checkpoint(PASSIVE)"
	restart        = "PRAGMA wal_checkpoint(RESTART)"
	readerPatience = "PRAGMA busy_timeout(250)" // milliseconds
)

// checkpoint copies what it can, and reports whether that is all there is. It flushes the write-ahead log before,
// and the file after: a crash in between leaves both as good as they were.
func (s *Store) checkpoint(c *conn, how string) (whole bool, err error) {
	err = errors.Join(s.file.present(), s.cfg.Fault(AtCheckpoint))
	var busy, pages, copied int
	if err == nil {
		_, err = c.scan(how, nil, &busy, &pages, &copied)
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint: %w", err)
	}
	s.file.note()
	return busy == 0 && pages == copied, s.cfg.Fault(AtCheckpointed)
}
