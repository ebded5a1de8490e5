package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
)

// Attempt implements buffer.Log. A row that is there can also be completed after its run has ended,
// since what was billed is worth knowing then too; a new one cannot be added.
func (l *runLog) Attempt(ctx context.Context, a buffer.Attempt) error {
	if err := a.Valid(); err != nil {
		return err
	}
	return l.s.queue.do(ctx, &attempt{log: l, a: a}, 1, 0)
}

type attempt struct {
	log *runLog
	a   buffer.Attempt
}

const (
	// The owner is the fence: whoever recovers a run takes it first.
	putAttempt = `INSERT INTO attempts (run, n, ` + attemptColumns + `)
		SELECT run, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE run = ? AND owner = ?
		ON CONFLICT (run, n) DO UPDATE SET (` + attemptColumns + `) = (` + excludedColumns + `)`
	completeAttempt = `UPDATE attempts SET (` + attemptColumns + `) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		WHERE n = ? AND run = (SELECT run FROM runs WHERE run = ? AND owner = ?)`
	attemptColumns = `route, model, sent, ended, status, request_id, class, sent_state, action, why, hint, first_byte, billed,
		reused_conn, request_bytes, preamble_bytes, content_bytes, input_tokens, output_tokens, usage`
	excludedColumns = `excluded.route, excluded.model, excluded.sent, excluded.ended, excluded.status, excluded.request_id,
		excluded.class, excluded.sent_state, excluded.action, excluded.why, excluded.hint, excluded.first_byte, excluded.billed,
		excluded.reused_conn, excluded.request_bytes, excluded.preamble_bytes, excluded.content_bytes,
		excluded.input_tokens, excluded.output_tokens, excluded.usage`
	countAttempts  = `SELECT count(*) FROM attempts WHERE run = ?`
	selectAttempts = `SELECT n, ` + attemptColumns + ` FROM attempts WHERE run = ? ORDER BY n`
)

func (o *attempt) apply(t *tx) (refusal, err error) {
	d, err := t.draft(o.log.id)
	if err != nil {
		return nil, err
	}
	if d == nil || d.owner != o.log.owner {
		return buffer.ErrSealed, nil
	}
	ok := false
	switch {
	case d.run.State.Live():
		ok, err = t.putAttempt(d, o.a)
	case !o.a.Ended.IsZero():
		ok, err = t.completeAttempt(d, o.a)
	}
	if err == nil && !ok {
		refusal = buffer.ErrSealed
	}
	return refusal, err
}

// putAttempt writes a row, new or again. It is false where the run has another owner by now.
func (t *tx) putAttempt(d *draft, a buffer.Attempt) (bool, error) {
	args := append([]any{a.N}, attemptValues(a, d.key)...)
	n, err := t.exec(putAttempt, append(args, d.row, d.owner)...)
	if err != nil {
		return false, fmt.Errorf("write attempt: %w", err)
	}
	if n == 0 {
		t.lost(d)
		return false, nil
	}
	if _, err := t.scan(countAttempts, []any{d.row}, &d.run.Sends); err != nil {
		return false, fmt.Errorf("count attempts: %w", err)
	}
	d.changed = true
	return true, nil
}

// completeAttempt writes a row that is there already, of a run that has ended.
func (t *tx) completeAttempt(d *draft, a buffer.Attempt) (bool, error) {
	n, err := t.exec(completeAttempt, append(attemptValues(a, d.key), a.N, d.row, d.owner)...)
	if err != nil {
		return false, fmt.Errorf("complete attempt: %w", err)
	}
	return n > 0, nil
}

// attemptValues are those of attemptColumns.
func attemptValues(a buffer.Attempt, key *dataKey) []any {
	if a.Billed == "" {
		a.Billed = policy.BilledUnknown
	}
	input, output, raw := usageValues(a.Usage, key, ofAttempt(a.N))
	return []any{a.Route, a.Model, a.Sent.UnixMilli(), millis(a.Ended), a.Status, a.RequestID, string(a.Class),
		string(a.SentState), string(a.Action), a.Why, a.Hint.Milliseconds(), a.FirstByte.Milliseconds(), string(a.Billed),
		a.ReusedConn, a.RequestBytes, a.PreambleBytes, a.ContentBytes, input, output, raw}
}

func scanAttempt(rows *sql.Rows, key *dataKey) (a buffer.Attempt, err error) {
	var sent, hint, first int64
	var ended sql.NullInt64
	var u usageRow
	err = rows.Scan(&a.N, &a.Route, &a.Model, &sent, &ended, &a.Status, &a.RequestID, &a.Class, &a.SentState, &a.Action,
		&a.Why, &hint, &first, &a.Billed, &a.ReusedConn, &a.RequestBytes, &a.PreambleBytes, &a.ContentBytes, &u.input, &u.output, &u.raw)
	if err != nil {
		return a, err
	}
	a.Sent, a.Ended = time.UnixMilli(sent).UTC(), fromMillis(ended)
	a.Hint, a.FirstByte = time.Duration(hint)*time.Millisecond, time.Duration(first)*time.Millisecond
	a.Usage, err = u.usage(key, ofAttempt(a.N))
	return a, err
}

// ofAttempt is where the usage of an attempt is.
func ofAttempt(n int) string { return "usage of attempt " + strconv.Itoa(n) }
