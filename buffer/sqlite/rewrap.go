package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

const (
	// selectNextKey walks over the names: each look is one step in the index, however many runs a name has.
	selectNextKey   = `SELECT min(key) FROM ciphers WHERE wrapped IS NOT NULL AND key > ?`
	countWrappedBy  = `SELECT count(*) FROM ciphers WHERE wrapped IS NOT NULL AND key = ?`
	selectWrappedBy = `SELECT r.id, c.run, 0 FROM ciphers c JOIN runs r ON r.run = c.run
		WHERE c.wrapped IS NOT NULL AND c.key = ? AND c.run > ? ORDER BY c.run LIMIT ?`
	selectDataKey = `SELECT wrapped FROM ciphers WHERE run = ? AND key = ? AND wrapped IS NOT NULL`
	changeDataKey = `UPDATE ciphers SET key = ?, wrapped = ? WHERE run = ? AND key = ? AND wrapped IS NOT NULL`
)

// rewrap has the first key wrap the data keys of kept runs that other keys have wrapped, so that those can go before
// the runs do. Nothing else of the runs changes. A crash leaves each data key under the one or the other.
func (w *sweep) rewrap() error {
	ring := w.s.keys
	names, err := ring.retiring(w.ctx, w.s.read)
	if err != nil {
		return err
	}
	for _, name := range names {
		opens, err := ring.opens(w.ctx, w.s.read, name)
		if err != nil {
			return err
		}
		if !opens { // another process's key, or another one of its name: what it does not open may not be damaged
			continue
		}
		for last := (aged{}); ; {
			page, err := w.page(selectWrappedBy, name, last.row, sweepRuns)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			last = page[len(page)-1]
			o := &rewrap{runs: page, name: name}
			if err := w.s.queue.do(w.ctx, o, len(page), 0); err != nil {
				return err
			}
			w.done.Rewrapped += o.rewrapped
		}
	}
	return nil
}

// retiring are the names, of all that have wrapped the data keys of kept runs, but the first key's; none where
// there are no keys.
func (ring *keyring) retiring(ctx context.Context, db *sql.DB) (names []string, err error) {
	if ring.active == "" {
		return nil, nil
	}
	for name := ""; ; {
		var next sql.NullString
		if err := db.QueryRowContext(ctx, selectNextKey, name).Scan(&next); err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		if !next.Valid {
			return names, nil
		}
		if name = next.String; name != ring.active {
			names = append(names, name)
		}
	}
}

// Retiring is how many kept runs need another key than the first one.
func (s *Store) Retiring(ctx context.Context) (runs int64, err error) {
	names, err := s.keys.retiring(ctx, s.read)
	for _, name := range names {
		var n int64
		if e := s.read.QueryRowContext(ctx, countWrappedBy, name).Scan(&n); e != nil {
			err = errors.Join(err, fmt.Errorf("read keys: %w", e))
		}
		runs += n
	}
	return runs, err
}

// rewrap is one step: some runs of one key, as far as they have not been swept meanwhile.
type rewrap struct {
	runs      []aged
	name      string
	rewrapped int
}

func (o *rewrap) apply(t *tx) (refusal, err error) {
	o.rewrapped = 0
	for _, r := range o.runs {
		done, err := t.rewrap(r, o.name)
		if err != nil {
			return nil, fmt.Errorf("wrap the data key of run %s anew: %w", r.id, err)
		}
		if done {
			o.rewrapped++
		}
	}
	return nil, nil
}

func (t *tx) rewrap(r aged, name string) (done bool, err error) {
	ring := t.w.s.keys
	var wrapped []byte
	some, err := t.scan(selectDataKey, []any{r.row, name}, &wrapped)
	if err != nil || !some {
		return false, err
	}
	secret, err := ring.secret(r.id, name, wrapped)
	if err == nil {
		wrapped = ring.wrap(r.id, secret)
	} else {
		// It is damaged whatever its key: it goes under the first one as it is, or it would hold the other for ever.
		t.w.s.log.Error("data key is damaged, and the run with it", zap.Stringer("run", r.id), zap.Error(err))
	}
	n, err := t.exec(changeDataKey, ring.active, wrapped, r.row, name)
	return n > 0, err
}
