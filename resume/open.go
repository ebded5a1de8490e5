package resume

import (
	"context"
	"fmt"
	"sort"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/tail"
)

// AheadError says that a position is beyond what the run has, or will ever have.
type AheadError struct {
	Next int64 // the run's head
}

func (e *AheadError) Error() string { return fmt.Sprintf("ahead of the run, whose head is %d", e.Next) }

// Is makes an AheadError a buffer.ErrAhead.
func (e *AheadError) Is(target error) bool { return target == buffer.ErrAhead }

// Tail is an open reader: a cursor that has been placed.
type Tail struct {
	*tail.Cursor
	Run  buffer.Run // as it was when the tail was opened
	From int64      // the position of the first chunk
	Skip int64      // bytes of that chunk that the reader has already
}

// Open places a cursor in the run. A position that has not come yet on a live run is waited for
// where the rules say so. Its errors are *AheadError, buffer.ErrReleased, buffer.ErrNotFound, and
// the store's.
func Open(ctx context.Context, log tail.Log, id ulid.ULID, s Start) (*Tail, error) {
	page, err := log.Read(ctx, id, 0, 1)
	if err != nil {
		return nil, err
	}
	run := page.Run
	if run.State == buffer.Released {
		return nil, buffer.ErrReleased
	}
	t := &Tail{Run: run}
	switch s.unit {
	case atTail:
		t.From = run.Head
	case bytes:
		t.From, t.Skip, err = seekByte(ctx, log, run, s.n)
	case sequence:
		t.From, err = seekSequence(ctx, log, run, s)
	default:
		if t.From = s.n; s.n > run.Head {
			err = &AheadError{Next: run.Head}
		}
	}
	if err != nil {
		return nil, err
	}
	t.Cursor = tail.New(log, id, t.From)
	return t, nil
}

// seekByte finds the chunk that holds byte b, and how much of it lies before b. Offsets are ordered
// as positions are, so it halves its way there.
func seekByte(ctx context.Context, log tail.Log, run buffer.Run, b int64) (from, skip int64, err error) {
	if b > run.Bytes {
		return 0, 0, &AheadError{Next: run.Head}
	}
	if b == run.Bytes {
		return run.Head, 0, nil
	}
	begin := int64(0)
	from = int64(sort.Search(int(run.Head), func(pos int) bool {
		page, e := log.Read(ctx, run.ID, int64(pos), 1)
		if e != nil || len(page.Chunks) == 0 {
			err = e
			return true
		}
		c := page.Chunks[0]
		if c.End > b {
			begin = c.End - int64(len(c.Data))
			return true
		}
		return false
	}))
	return from, b - begin, err
}

// seekSequence finds the chunk after the one with sequence number s. While the run is live and has
// not come so far, it waits.
func seekSequence(ctx context.Context, log tail.Log, run buffer.Run, s Start) (int64, error) {
	cursor := tail.New(log, run.ID, 0)
	next := cursor.Next
	if !s.Follow {
		next = cursor.Poll
	}
	seen := int64(-1)
	for {
		page, err := next(ctx)
		for _, c := range page.Chunks {
			n, ok := provider.SequenceNumber(c.Data)
			switch {
			case ok && n == s.n:
				return c.Pos + 1, nil
			case ok && n > s.n:
				return c.Pos, nil
			case ok:
				seen = n
			}
		}
		if err != nil || len(page.Chunks) == 0 {
			if page.Run.State.Ended() || (err == nil && seen < s.n) {
				return 0, &AheadError{Next: page.Run.Head}
			}
			return 0, err
		}
	}
}
