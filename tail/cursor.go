// Package tail reads one run from a position to its end, following it while it is live. It knows
// nothing of HTTP. A reader is a position that pulls: there is no queue per reader, and a slow one
// costs a number.
package tail

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// PageBytes is how much of a run one Next takes at most: large enough that a replay is few writes,
// small enough that a slow reader holds little. The first one takes less, so that it comes soon.
const (
	PageBytes  = 256 << 10
	firstBytes = 64 << 10
)

// Log is what a cursor needs of a store.
type Log interface {
	Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error)
	Watch(id ulid.ULID) (changed <-chan struct{}, stop func())
}

// ErrQuiet says that nothing has come for as long as the reader wanted to wait.
var ErrQuiet = errors.New("nothing has come")

// Cursor is one reader of one run. It is for one goroutine.
type Cursor struct {
	log   Log
	id    ulid.ULID
	pos   int64
	most  int // bytes of the next page
	page  buffer.Page
	quiet buffer.LazyTimer

	pages *Pages
	held  int64 // what the page takes of them
}

// New returns a cursor whose first chunk is the one at position from.
func New(log Log, id ulid.ULID, from int64) *Cursor {
	return &Cursor{log: log, id: id, pos: from, most: firstBytes}
}

// Bound has the cursor share pages with others from now on. Then Close ends it.
func (c *Cursor) Bound(pages *Pages) { c.pages = pages }

// Close gives up the page, and the bytes of its chunks. The cursor can be used again.
func (c *Cursor) Close() {
	c.page.GiveBack()
	c.page.Chunks, c.page.Joined, c.page.Recycle = nil, nil, nil
	if c.held > 0 {
		c.pages.give(c.held)
		c.held = 0
	}
}

// Shares reports whether others may wait until the page is given up, by the next call or Close.
func (c *Cursor) Shares() bool { return c.held > 0 }

// Pos is the position of the next chunk that Next will give.
func (c *Cursor) Pos() int64 { return c.pos }

// Next returns the chunks from the cursor's position on, at least one, waiting for it while the run
// is live. At the end of an ended run it returns io.EOF, with the page's Run set. Its other errors
// are the store's, and ctx's cause of ending. The page is the cursor's, and good until its next call or Close, the
// bytes of its chunks too: what is kept is copied. So a reader who waits holds little.
func (c *Cursor) Next(ctx context.Context) (*buffer.Page, error) { return c.next(ctx, time.Time{}) }

// Within is Next for a reader who waits no longer than d: then it returns ErrQuiet, with the page's
// Run set.
func (c *Cursor) Within(ctx context.Context, d time.Duration) (*buffer.Page, error) {
	return c.next(ctx, time.Now().Add(d))
}

// Poll is Next without the wait: an empty page where nothing is there yet.
func (c *Cursor) Poll(ctx context.Context) (*buffer.Page, error) { return &c.page, c.read(ctx) }

// Take makes the page that was given last the caller's: it stays good beyond the cursor's next call, for
// another goroutine, until the caller recycles it, or for ever.
func (c *Cursor) Take() buffer.Page {
	page := c.page
	c.page = buffer.Page{}
	return page
}

// next takes the bell, then reads, then waits: a commit between the read and the wait has rung the
// bell already.
func (c *Cursor) next(ctx context.Context, until time.Time) (*buffer.Page, error) {
	for {
		changed, stop := c.log.Watch(c.id)
		err := c.read(ctx)
		if err == nil && len(c.page.Chunks) == 0 {
			err = c.wait(ctx, changed, until)
		}
		stop()
		if err != nil || len(c.page.Chunks) > 0 {
			return &c.page, err
		}
	}
}

func (c *Cursor) wait(ctx context.Context, changed <-chan struct{}, until time.Time) error {
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.quiet.At(until):
			if c.quiet.Over(until) {
				return ErrQuiet
			}
		}
	}
}

func (c *Cursor) read(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	if n := len(c.page.Chunks); n > 0 {
		c.pos += int64(n)
		c.most = PageBytes
	}
	if len(c.page.Chunks) == 0 && c.page.Run.State.Ended() {
		return io.EOF
	}
	return nil
}

// take reads the next page in place of the one before. Of one that has no room now it learns how large it is,
// and reads it again when there is.
func (c *Cursor) take(ctx context.Context) (err error) {
	c.Close()
	if c.page, err = c.log.Read(ctx, c.id, c.pos, c.most); err != nil {
		return err
	}
	cost := c.pages.cost(c.page.Chunks)
	if cost == 0 {
		return nil
	}
	if !c.pages.try(cost) {
		c.Close()
		if err := c.pages.take(ctx, cost); err != nil {
			return err
		}
		if c.page, err = c.log.Read(ctx, c.id, c.pos, c.most); err != nil {
			c.pages.give(cost)
			return err
		}
	}
	c.held = cost
	return nil
}
