package sqlite

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// releaseUnread is for a row that makes no run any more: it goes when its time is over, as all do.
const releaseUnread = `UPDATE runs SET state = 'released', released = ?1
	WHERE run = ?2 AND ended IS NOT NULL AND released IS NULL AND ended + ttl <= ?3`

// expire releases runs that still are what the sweep saw.
type expire struct {
	runs     []aged
	now      time.Time
	released int
}

func (o *expire) apply(t *tx) (refusal, err error) {
	o.released = 0
	for _, r := range o.runs {
		d, err := t.draft(r.id)
		if err != nil {
			t.w.s.log.Error("run cannot be read, and is released as it stands", zap.Stringer("run", r.id), zap.Error(err))
			n, err := t.exec(releaseUnread, t.now.UnixMilli(), r.row, o.now.UnixMilli())
			if err != nil {
				return nil, err
			}
			o.released += int(n)
			t.gone = append(t.gone, r.id)
			continue
		}
		if d == nil || !d.run.State.CanBecome(buffer.Released) || d.run.Expires().After(o.now) {
			continue
		}
		ok, err := t.change(d, buffer.Released, buffer.Closing{}, nil)
		if err != nil {
			return nil, err
		}
		if ok {
			o.released++
		}
	}
	return nil, nil
}

// drop deletes segments of released runs up to the bounds of a step, each run's from its beginning on:
// who reads it from there is refused at once, who is far ahead may still get to the end.
type drop struct {
	runs     []aged
	chunks   int64
	bytes    int64
	finished int // runs at the front of runs that have no chunks any more
}

const (
	selectFirst   = `SELECT id, iif(json_valid(sizes), json_array_length(sizes), 0), length(data) FROM segments WHERE run = ? ORDER BY pos LIMIT 1`
	deleteSegment = `DELETE FROM segments WHERE id = ?`
	destroyKey    = `UPDATE ciphers SET wrapped = NULL, header = NULL, partial = NULL WHERE run = ?`
	markSwept     = `UPDATE runs SET swept = ? WHERE run = ? AND released IS NOT NULL`
)

func (o *drop) apply(t *tx) (refusal, err error) {
	o.chunks, o.bytes, o.finished = 0, 0, 0
	for _, r := range o.runs {
		done, err := o.step(t, r)
		if err != nil {
			return nil, fmt.Errorf("delete chunks of run %s: %w", r.id, err)
		}
		if !done {
			return nil, nil
		}
		o.finished++
	}
	return nil, nil
}

// step deletes from one run, its data key before anything else, and reports whether that was all of it. A segment
// goes as a whole.
func (o *drop) step(t *tx, r aged) (done bool, err error) {
	if _, err := t.exec(destroyKey, r.row); err != nil {
		return false, err
	}
	for {
		var id, chunks, bytes int64
		some, err := t.scan(selectFirst, []any{r.row}, &id, &chunks, &bytes)
		if err != nil {
			return false, err
		}
		if !some {
			break
		}
		if o.chunks >= sweepChunks || o.bytes >= sweepBytes {
			return false, nil
		}
		if _, err := t.exec(deleteSegment, id); err != nil {
			return false, err
		}
		o.chunks += chunks
		o.bytes += bytes
	}
	if _, err := t.exec(markSwept, t.now.UnixMilli(), r.row); err != nil {
		return false, err
	}
	t.gone = append(t.gone, r.id)
	return true, nil
}

// forget removes tombstones. Only the sweep's first two passes make any.
type forget struct {
	created   time.Time // at the latest
	forgotten int
}

const selectForgettable = `SELECT id FROM runs WHERE swept IS NOT NULL AND created <= ? ORDER BY created LIMIT ?`

// The last of these is the run itself.
var forgetRun = []string{
	`DELETE FROM keys WHERE run = (SELECT run FROM runs WHERE id = ?)`,
	`DELETE FROM attempts WHERE run = (SELECT run FROM runs WHERE id = ?)`,
	`DELETE FROM ciphers WHERE run = (SELECT run FROM runs WHERE id = ?)`,
	`DELETE FROM calls WHERE run = (SELECT run FROM runs WHERE id = ?)`,
	`DELETE FROM runs WHERE id = ?`,
}

func (o *forget) apply(t *tx) (refusal, err error) {
	o.forgotten = 0
	ids, err := t.ids(selectForgettable, o.created.UnixMilli(), sweepRuns)
	if err != nil {
		return nil, fmt.Errorf("read tombstones: %w", err)
	}
	for _, id := range ids {
		if err := t.forget(id); err != nil {
			return nil, fmt.Errorf("forget run %s: %w", id, err)
		}
	}
	o.forgotten = len(ids)
	return nil, nil
}

func (t *tx) forget(id ulid.ULID) error {
	for _, query := range forgetRun {
		if _, err := t.exec(query, id.String()); err != nil {
			return err
		}
	}
	t.drop(id)
	t.gone = append(t.gone, id)
	return nil
}
