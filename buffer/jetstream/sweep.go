package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// sweepers is how many runs are swept at the same time: each takes some round trips.
const sweepers = 8

// Sweep implements buffer.Store, in three passes. Every node sweeps: what another has done is found
// done, and not counted. A crash between two steps leaves nothing undone that the next sweep would not
// find.
func (s *Store) Sweep(ctx context.Context, now time.Time, open func(ulid.ULID) bool) (buffer.Swept, error) {
	w := &sweep{s: s, ctx: ctx, now: now}
	read := func(e *entry) bool { return open != nil && open(e.run.ID) }
	expired := func(e *entry) bool {
		return e.run.State.CanBecome(buffer.Released) && !e.run.Expires().After(now) && !read(e)
	}
	released := func(e *entry) bool { return e.run.State == buffer.Released && !e.swept && !read(e) }
	over := func(e *entry) bool { return e.swept && !e.run.Created.Add(buffer.KeyTTL).After(now) }
	for _, pass := range []struct {
		of func(*entry) bool
		do func(*entry) error
	}{{expired, w.expire}, {released, w.drop}, {over, w.forget}} {
		if err := w.each(s.index.all(pass.of), pass.do); err != nil {
			return w.done, fmt.Errorf("sweep: %w", err)
		}
	}
	return w.done, nil
}

type sweep struct {
	s   *Store
	ctx context.Context
	now time.Time

	mu   sync.Mutex // guards done
	done buffer.Swept
}

// each does it for all of the runs, some at a time, until one fails.
func (w *sweep) each(runs []*entry, do func(*entry) error) error {
	var sweeping sync.WaitGroup
	next := make(chan *entry)
	failed := make(chan error, sweepers)
	for range min(sweepers, len(runs)) {
		sweeping.Go(func() {
			for e := range next {
				if err := do(e); err != nil {
					failed <- fmt.Errorf("run %s: %w", e.run.ID, err)
					return
				}
			}
		})
	}
	var err error
	for _, e := range runs {
		select {
		case next <- e:
			continue
		case err = <-failed:
		}
		break
	}
	close(next)
	sweeping.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return err
}

func (w *sweep) count(released int, chunks int64, forgotten int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done.Released += released
	w.done.Chunks += chunks
	w.done.Forgotten += forgotten
}

// expire releases a run whose TTL is over.
func (w *sweep) expire(e *entry) error {
	n := 0
	_, err := w.update(e, func(v version) (draft, error) {
		if n = 0; !v.Run.State.CanBecome(buffer.Released) || v.Run.Expires().After(w.now) {
			return draft{}, errUnchanged
		}
		n = 1
		return draft{record: w.s.moved(v.record, buffer.Released, buffer.Closing{})}, nil
	})
	if err == nil {
		w.count(n, 0, 0)
	}
	return err
}

// drop deletes the messages before the run's last one, which has its record, and then says so in it.
func (w *sweep) drop(e *entry) error {
	stream, subject := w.s.layout.place(e.run.ID)
	n := int64(0)
	_, err := w.update(e, func(v version) (draft, error) {
		if n = 0; v.Swept || v.Run.State != buffer.Released || v.rec != v.seq {
			return draft{}, errUnchanged
		}
		if err := w.s.purge(w.ctx, stream, subject, v.first); err != nil {
			return draft{}, err
		}
		n = v.Run.Head
		d := draft{record: v.record}
		d.Swept = true
		return d, nil
	})
	if err == nil {
		w.count(0, n, 0)
	}
	return err
}

// forget frees the run's key and deletes the run. A crash in between leaves a run without its key.
func (w *sweep) forget(e *entry) error {
	v, err := w.update(e, func(version) (draft, error) { return draft{}, errUnchanged })
	if err != nil || v.seq == 0 || !v.Swept {
		return err
	}
	if v.Run.Key != "" {
		held, seq, err := w.s.holder(w.ctx, v.Run.Caller, v.Run.Key)
		if err == nil && held.Run.ID == v.Run.ID {
			err = w.s.unclaim(w.ctx, v.Run, seq)
		}
		if err != nil && !errors.Is(err, buffer.ErrNotFound) {
			return err
		}
	}
	stream, subject := w.s.layout.place(v.Run.ID)
	if err := w.s.purge(w.ctx, stream, subject, v.seq+1); err != nil {
		return err
	}
	w.s.index.forget(v.Run.ID, v.seq)
	w.s.bells.Ring(v.Run.ID)
	w.count(0, 0, 1)
	return nil
}

// update is the store's, of a run that another node may have forgotten: then so does this one.
func (w *sweep) update(e *entry, next func(version) (draft, error)) (version, error) {
	v, err := w.s.update(w.ctx, e.run.ID, next)
	if errors.Is(err, buffer.ErrNotFound) {
		w.s.index.forget(e.run.ID, e.seq)
		return version{}, nil
	}
	return v, err
}
