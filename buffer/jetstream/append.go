package jetstream

import (
	"context"
	"slices"
	"sync"

	"github.com/spool-dev/spool/buffer"
)

// runLog is the right of one owner to append to one run.
type runLog struct {
	s      *Store
	sealed <-chan struct{}

	mu sync.Mutex // guards at; never held over I/O
	at version    // the last that is known here
}

// Append implements buffer.Log. If its context ends first, the chunks may be committed all the same.
func (l *runLog) Append(ctx context.Context, chunks [][]byte, state buffer.State, c buffer.Closing) error {
	return l.change(ctx, func(v version) (draft, error) {
		if v.Owner != l.s.owner {
			return draft{}, buffer.ErrSealed
		}
		if err := v.Run.Admits(state, c); err != nil {
			return draft{}, err
		}
		d := draft{record: l.s.moved(v.record, state, c), chunks: chunks}
		d.same = state == v.Run.State && plain(c)
		return d, nil
	})
}

// plain reports whether c says nothing.
func plain(c buffer.Closing) bool {
	return c.Status == 0 && c.Header == nil && c.Framing == "" && c.ProviderID == "" && c.Reason == "" &&
		len(c.Notes) == 0 && c.Partial == nil && c.Usage == nil && c.Attempt == nil
}

// Attempt implements buffer.Log. A row that is there can also be completed after its run has ended,
// since what was billed is worth knowing then too; a new one cannot be added.
func (l *runLog) Attempt(ctx context.Context, a buffer.Attempt) error {
	if err := a.Valid(); err != nil {
		return err
	}
	return l.change(ctx, func(v version) (draft, error) {
		there := slices.ContainsFunc(v.Run.Attempts, func(have buffer.Attempt) bool { return have.N == a.N })
		if v.Owner != l.s.owner || !v.Run.State.Live() && (a.Ended.IsZero() || !there) {
			return draft{}, buffer.ErrSealed
		}
		d := draft{record: v.record}
		d.Run = withAttempt(v.Run, a)
		return d, nil
	})
}

// change commits to the run, from the version that is known here. A run that is forgotten is sealed.
func (l *runLog) change(ctx context.Context, next func(version) (draft, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	at := l.at
	l.mu.Unlock()
	if err := l.s.heed(ctx, at.Run.ID); err != nil {
		return err
	}
	v, err := l.s.change(ctx, at, next)
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.seq > l.at.seq {
		l.at = v
	}
	return gone(err)
}
