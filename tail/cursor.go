// Package tail reads one run from a position to its end, following it while it is live. It knows
// nothing of HTTP. A reader is a position that pulls: there is no queue per reader, and a slow one
// costs a number.
package tail

import (
	"context"
	"io"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// PageBytes is how much of a run one Next takes at most: large enough that a replay is few writes,
// small enough that a slow reader holds little.
const PageBytes = 256 << 10

// Log is what a cursor needs of a store.
type Log interface {
	Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error)
	Watch(id ulid.ULID) (changed <-chan struct{}, stop func())
}

// Cursor is one reader of one run. It is for one goroutine.
type Cursor struct {
	log Log
	id  ulid.ULID
	pos int64
}

// New returns a cursor whose first chunk is the one at position from.
func New(log Log, id ulid.ULID, from int64) *Cursor { return &Cursor{log: log, id: id, pos: from} }

// Pos is the position of the next chunk that Next will give.
func (c *Cursor) Pos() int64 { return c.pos }

// Next returns the chunks from the cursor's position on, at least one, waiting for it while the run
// is live. At the end of an ended run it returns io.EOF, with the page's Run set. Its other errors
// are the store's, and ctx's cause of ending.
func (c *Cursor) Next(ctx context.Context) (buffer.Page, error) {
	for {
		page, err := c.step(ctx, true)
		if err != nil || len(page.Chunks) > 0 {
			return page, err
		}
	}
}

// Poll is Next without the wait: an empty page where nothing is there yet.
func (c *Cursor) Poll(ctx context.Context) (buffer.Page, error) { return c.step(ctx, false) }

// step takes the bell, then reads, then waits: a commit between the read and the wait has rung the
// bell already.
func (c *Cursor) step(ctx context.Context, wait bool) (buffer.Page, error) {
	changed, stop := c.log.Watch(c.id)
	defer stop()
	page, err := c.log.Read(ctx, c.id, c.pos, PageBytes)
	if err != nil {
		return page, err
	}
	c.pos += int64(len(page.Chunks))
	switch {
	case len(page.Chunks) > 0:
		return page, nil
	case page.Run.State.Ended():
		return page, io.EOF
	case !wait:
		return page, nil
	}
	select {
	case <-changed:
		return page, nil
	case <-ctx.Done():
		return page, context.Cause(ctx)
	}
}
