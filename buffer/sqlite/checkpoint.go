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
	return c.s.checkpoint(c.conn)
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
	return c.s.checkpoint(w)
}

func (c *checkpointer) stop() { close(c.quit) }

func (c *checkpointer) close() error { return c.conn.close() }

// checkpoint is the writer's own share, after its batch. It puts a new stamp into the file.
type checkpoint struct{}

func (checkpoint) apply(t *tx) (refusal, err error) {
	t.checkpoint = true
	return nil, t.restamp()
}

// checkpoint copies what it can without waiting. It flushes the write-ahead log before, and the file
// after: a crash in between leaves both as good as they were.
func (s *Store) checkpoint(c *conn) error {
	err := errors.Join(s.file.present(), s.cfg.Fault(AtCheckpoint))
	if err == nil {
		var busy, pages, copied int
		_, err = c.scan("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &copied)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.file.note()
	return s.cfg.Fault(AtCheckpointed)
}
