package sqlite

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// runLog is the right of one owner to append to one run.
type runLog struct {
	s      *Store
	id     ulid.ULID
	owner  int64
	sealed <-chan struct{}
}

// Sealed implements buffer.Log.
func (l *runLog) Sealed() <-chan struct{} { return l.sealed }

// Append implements buffer.Log. If its context ends first, the chunks may be committed all the same.
func (l *runLog) Append(ctx context.Context, chunks [][]byte, state buffer.State, c buffer.Closing) error {
	size := len(c.Partial)
	for _, data := range chunks {
		size += len(data)
	}
	return l.s.queue.do(ctx, &appendOp{log: l, chunks: chunks, state: state, closing: c}, len(chunks), size)
}

type appendOp struct {
	log     *runLog
	chunks  [][]byte
	state   buffer.State
	closing buffer.Closing
}

func (o *appendOp) apply(t *tx) (refusal, err error) {
	d, err := t.draft(o.log.id)
	if err != nil {
		return nil, err
	}
	if d == nil || d.owner != o.log.owner {
		return buffer.ErrSealed, nil
	}
	if refusal := d.run.Admits(o.state, o.closing); refusal != nil {
		return refusal, nil
	}
	ok, err := t.change(d, o.state, o.closing, o.chunks)
	if err == nil && !ok {
		refusal = buffer.ErrSealed
	}
	return refusal, err
}

const (
	changeRun = `UPDATE runs SET state = ?, outcome = ?, reason = ?, head = ?, bytes = ?, committed = ?, ended = ?, released = ?
		WHERE run = ? AND owner = ? AND state = ?`
	changeCall = `UPDATE calls SET notes = ?, status = ?, header = ?, framing = ?, provider_id = ?, partial = ?,
		input_tokens = ?, output_tokens = ?, usage = ? WHERE run = ?`
	closeAttempts = `UPDATE attempts SET ended = ?, billed = 'unknown' WHERE run = ? AND ended IS NULL`
)

// change moves a run to its next state, with chunks and closing facts. It is false, and nothing was
// changed, where the file does not agree with what memory says of the run: it has another owner
// by now. A run that stays as it is has nothing to change but its chunks, which come last.
func (t *tx) change(d *draft, to buffer.State, c buffer.Closing, chunks [][]byte) (bool, error) {
	before := d.run
	after := before.Next(to, c, t.now)
	if to != before.State || after.Reason != before.Reason {
		head, bytes := after.Head, after.Bytes
		switch {
		case before.State.Live() && to.Ended():
			head += int64(len(chunks))
			for _, data := range chunks {
				bytes += int64(len(data))
			}
		case to.Live():
			head, bytes = d.stored, before.Bytes-span(d.arrived)-span(d.added)
		}
		n, err := t.exec(changeRun, string(after.State), string(after.Outcome), string(after.Reason), head, bytes,
			millis(after.Committed), millis(after.Ended), millis(after.Released), d.row, d.owner, string(before.State))
		if err != nil {
			return false, fmt.Errorf("change run: %w", err)
		}
		if n == 0 {
			t.lost(d)
			return false, nil
		}
	}
	d.run, d.changed = after, true
	t.add(d, chunks)
	return true, t.changeFacts(d, before, c)
}

// changeFacts writes the wide columns where c has any, and with the end of the run the end of what is
// open in its ledger: nobody will complete it, unless this owner does so later.
func (t *tx) changeFacts(d *draft, before buffer.Run, c buffer.Closing) error {
	r := d.run
	if c.Status != 0 || c.Header != nil || c.Framing != "" || c.ProviderID != "" || c.Partial != nil || c.Usage != nil || len(c.Notes) > 0 {
		input, output, raw := usageValues(r.Usage, d.key, "usage")
		header, partial := headerText(r.Header), r.Partial
		if d.key != nil {
			if err := t.hideFacts(d); err != nil {
				return err
			}
			header, partial = nil, nil
		}
		notes := "[]"
		if len(r.Notes) > 0 {
			notes = jsonText(r.Notes)
		}
		if _, err := t.exec(changeCall, notes, r.Status, header, string(r.Framing), r.ProviderID, partial,
			input, output, raw, d.row); err != nil {
			return fmt.Errorf("change call: %w", err)
		}
	}
	if c.Attempt != nil {
		if _, err := t.putAttempt(d, *c.Attempt); err != nil {
			return err
		}
	}
	if before.State.Live() && r.State.Ended() {
		if _, err := t.exec(closeAttempts, t.now.UnixMilli(), d.row); err != nil {
			return fmt.Errorf("close attempts: %w", err)
		}
	}
	return nil
}

const changeCipher = `UPDATE ciphers SET header = ?, partial = ? WHERE run = ?`

// hideFacts writes what of an encrypted run's call tells of its answer.
func (t *tx) hideFacts(d *draft) error {
	var header []byte
	if d.run.Header != nil {
		header = []byte(jsonHeader(d.run.Header))
	}
	if _, err := t.exec(changeCipher, d.key.hide(header, "header"), d.key.hide(d.run.Partial, "partial"), d.row); err != nil {
		return fmt.Errorf("change data key's row: %w", err)
	}
	return nil
}

// lost drops what memory says of a run that another owner has taken.
func (t *tx) lost(d *draft) {
	t.drop(d.run.ID)
	t.w.forget(d.run.ID)
}
