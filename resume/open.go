package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/tail"
)

// ErrNotYet: the position has not come yet, on a live run, and the reader does not wait for it, or
// has waited as long as it wanted.
var ErrNotYet = errors.New("position has not come yet")

// Log is what is read from.
type Log = tail.Log

// Pages is what readers share of large pages.
type Pages = tail.Pages

// NewPages has room for so many bytes.
func NewPages(bytes int64) *Pages { return tail.NewPages(bytes) }

// ErrQuiet says that a tail's Within has waited in vain.
var ErrQuiet = tail.ErrQuiet

// AheadError says that a position is beyond what the run has, or will ever have.
type AheadError struct {
	Next int64 // the run's head
}

// Error implements error.
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
// where the rules say so. Its errors are *AheadError, ErrNotYet (with a tail that starts at the head),
// buffer.ErrReleased, buffer.ErrNotFound, and the store's.
func Open(ctx context.Context, log tail.Log, id ulid.ULID, s Start) (*Tail, error) {
	t, err := look(ctx, log, id, s)
	if err != nil {
		return nil, err
	}
	run := &t.Run
	if run.State == buffer.Released {
		return nil, buffer.ErrReleased
	}
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
	if err != nil && !errors.Is(err, ErrNotYet) {
		return nil, err
	}
	t.Cursor = tail.New(log, id, t.From)
	return t, err
}

// look is a tail that has not been placed, of the run that a start is in; also beside buffer.ErrReleased. What
// is announced of it may be one commit behind what its readers were told by the log itself, and some milliseconds
// where another process keeps it: a start beyond it is looked for there.
func look(ctx context.Context, log tail.Log, id ulid.ULID, s Start) (*Tail, error) {
	page, err := log.Read(ctx, id, 0, 0)
	if err == nil && s.beyond(&page.Run) {
		page, err = log.Read(ctx, id, page.Run.Head+1, 0)
		if errors.Is(err, buffer.ErrAhead) {
			err = nil // the run comes with it
		}
	}
	return &Tail{Run: page.Run}, err
}

// beyond reports whether the start is behind all that the run has.
func (s Start) beyond(r *buffer.Run) bool {
	switch s.unit {
	case positions:
		return s.n > r.Head
	case bytes:
		return s.n > r.Bytes
	}
	return false
}

// seekByte finds the chunk that holds byte b, and how much of it lies before b. Offsets are ordered
// as positions are, so it halves its way there.
func seekByte(ctx context.Context, log tail.Log, run *buffer.Run, b int64) (from, skip int64, err error) {
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
		end := page.Chunks[0].End
		size := int64(len(page.Chunks[0].Data))
		page.GiveBack()
		if end > b {
			begin = end - size
			return true
		}
		return false
	}))
	return from, b - begin, err
}

// seekSequence finds the chunk after the one with sequence number s. While the run is live and has
// not come so far, it waits as the reader does: to the end, for a while, or not at all.
func seekSequence(ctx context.Context, log tail.Log, run *buffer.Run, s Start) (int64, error) {
	cursor := tail.New(log, run.ID, 0)
	defer cursor.Close()
	next := cursor.Next
	switch {
	case s.Wait > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Wait, ErrNotYet)
		defer cancel()
	case !s.Follow:
		next = cursor.Poll
	}
	for {
		page, err := next(ctx)
		for _, c := range page.Chunks {
			n, ok := provider.SequenceNumber(c.Data)
			switch {
			case ok && n == s.n:
				return c.Pos + 1, nil
			case ok && n > s.n:
				return c.Pos, nil
			}
		}
		switch {
		case err == io.EOF:
			return 0, &AheadError{Next: page.Run.Head}
		case err != nil:
			return page.Run.Head, err
		case len(page.Chunks) == 0:
			return page.Run.Head, ErrNotYet
		}
	}
}
