package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// The bounds of one step, so that appends wait no longer for it than for each other.
const (
	sweepRuns   = 256
	sweepChunks = batchChunks
	sweepBytes  = batchBytes
)

// Sweep implements buffer.Store, in four passes. A crash between two steps leaves nothing undone
// that the next sweep would not find. The room in the file is used again for new chunks. While other
// processes have the log open, whose tails open does not know, and who may not have this one's keys, nothing is
// deleted and no data key wrapped anew.
func (s *Store) Sweep(ctx context.Context, now time.Time, open func(ulid.ULID) bool) (buffer.Swept, error) {
	w := &sweep{s: s, ctx: ctx, now: now, open: open}
	passes := []func() error{w.expire, w.drop, w.forget, w.rewrap}
	others, err := s.owners.others()
	if err != nil {
		return w.done, fmt.Errorf("sweep: %w", err)
	}
	if len(others) > 0 {
		s.follower.notice()
		passes = passes[:1]
	}
	for _, pass := range passes {
		if err := pass(); err != nil {
			return w.done, fmt.Errorf("sweep: %w", err)
		}
	}
	if w.failed != nil {
		return w.done, fmt.Errorf("sweep: %w", w.failed)
	}
	return w.done, nil
}

type sweep struct {
	s    *Store
	ctx  context.Context
	now  time.Time
	open func(ulid.ULID) bool
	done buffer.Swept

	failed error // what kept single runs' chunks where they are
}

// aged is a run with its place in the order that a pass goes by.
type aged struct {
	id  ulid.ULID
	row int64
	at  int64
}

const (
	selectExpired = `SELECT id, run, ended + ttl FROM runs WHERE ended IS NOT NULL AND released IS NULL
		AND ended + ttl <= ? AND (ended + ttl, run) > (?, ?) ORDER BY ended + ttl, run LIMIT ?`
	selectUnswept = `SELECT id, run, 0 FROM runs WHERE released IS NOT NULL AND swept IS NULL AND run > ? ORDER BY run LIMIT ?`
)

// expire releases the ended runs whose TTL is over.
func (w *sweep) expire() error {
	var last aged
	for {
		page, err := w.page(selectExpired, w.now.UnixMilli(), last.at, last.row, sweepRuns)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1]
		o := &expire{runs: w.unread(page), now: w.now}
		if err := w.s.queue.do(w.ctx, o, len(o.runs), 0); err != nil {
			return err
		}
		w.done.Released += o.released
	}
}

// drop deletes the chunks of released runs, in steps.
func (w *sweep) drop() error {
	var last aged
	for {
		page, err := w.page(selectUnswept, last.row, sweepRuns)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1]
		for page = w.unread(page); len(page) > 0; page = w.unread(page) {
			o := &drop{runs: page}
			err := w.s.queue.do(w.ctx, o, sweepChunks, 0)
			if errors.Is(err, buffer.ErrStorage) && len(page) > 1 {
				o = &drop{runs: page[:1]} // one that is damaged must not keep the others
				err = w.s.queue.do(w.ctx, o, sweepChunks, 0)
			}
			if errors.Is(err, buffer.ErrStorage) {
				w.failed = errors.Join(w.failed, err)
				page = page[1:]
				continue
			}
			if err != nil {
				return err
			}
			w.done.Chunks += o.chunks
			page = page[o.finished:]
		}
	}
}

// forget removes the tombstones whose keys' time is over.
func (w *sweep) forget() error {
	for {
		o := &forget{created: w.now.Add(-buffer.KeyTTL)}
		if err := w.s.queue.do(w.ctx, o, sweepRuns, 0); err != nil {
			return err
		}
		w.done.Forgotten += o.forgotten
		if o.forgotten < sweepRuns {
			return nil
		}
	}
}

// unread are those of the page that no tail is under way for.
func (w *sweep) unread(page []aged) []aged {
	var runs []aged
	for _, r := range page {
		if w.open == nil || !w.open(r.id) {
			runs = append(runs, r)
		}
	}
	return runs
}

func (w *sweep) page(query string, args ...any) (page []aged, err error) {
	err = w.s.snapshot(w.ctx, func(r reading) error {
		rows, err := r.tx.QueryContext(w.ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close() // Err below says whether all came
		for rows.Next() {
			var r aged
			var text string
			if err := rows.Scan(&text, &r.row, &r.at); err != nil {
				return err
			}
			if r.id, err = ulid.ParseStrict(text); err != nil {
				return err
			}
			page = append(page, r)
		}
		return rows.Err()
	})
	return page, err
}
