package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Create implements buffer.Store. If its context ends first, the run may exist all the same, without
// anybody to append to it: Seal ends it.
func (s *Store) Create(ctx context.Context, r buffer.Run) (buffer.Log, buffer.Run, error) {
	if err := r.Creatable(); err != nil {
		return nil, buffer.Run{}, fmt.Errorf("create run: %w", err)
	}
	o := &create{want: r}
	err := s.queue.do(ctx, o, 0, 0)
	if errors.Is(err, buffer.ErrExists) {
		return nil, o.run, err
	}
	if err != nil {
		return nil, buffer.Run{}, err // o may still be the writer's
	}
	return &runLog{s: s, id: o.run.ID, owner: s.writer.owner, sealed: s.window.sealed(o.run.ID)}, o.run, nil
}

type create struct {
	want buffer.Run
	run  buffer.Run // created, or the one that holds what was wanted
}

const (
	selectKey = `SELECT r.id FROM keys k JOIN runs r ON r.run = k.run WHERE k.caller = ? AND k.key = ?`
	insertRun = `INSERT INTO runs (id, caller, owner, state, ttl, created) VALUES (?, ?, ?, 'idle', ?, ?) RETURNING run`
	// The conflict is the taking over of a key, whose present run was checked in this transaction.
	insertKey  = `INSERT INTO keys (caller, key, run) VALUES (?, ?, ?) ON CONFLICT (caller, key) DO UPDATE SET run = excluded.run`
	insertCall = `INSERT INTO calls (run, key, body_hash, retry_of, method, path, provider, route, dialect, model,
		stream, kind, operation, turn, tags, cancel_after, budget_attempts, budget_elapsed, budget_cost, budget_spent, budget_since)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertCipher = `INSERT INTO ciphers (run, key, wrapped) VALUES (?, ?, ?)`
)

func (o *create) apply(t *tx) (refusal, err error) {
	holder, err := o.holder(t)
	if err != nil {
		return nil, err
	}
	if holder != nil {
		o.run = holder.run
		return buffer.ErrExists, nil
	}
	return nil, o.insert(t)
}

// holder returns the run that has the id, or else the key and is not to be retried.
func (o *create) holder(t *tx) (*draft, error) {
	d, err := t.draft(o.want.ID)
	if d != nil || err != nil || o.want.Key == "" {
		return d, err
	}
	var text string
	taken, err := t.scan(selectKey, []any{o.want.Caller, o.want.Key}, &text)
	if err != nil || !taken || text == idText(o.want.RetryOf) {
		return nil, err
	}
	id, err := ulid.ParseStrict(text)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return t.draft(id)
}

// insert writes run, key and call together: a claim of a key always has its run.
func (o *create) insert(t *tx) error {
	r := o.want
	r.Created = t.now
	r, err := stored(r)
	if err != nil {
		return err
	}
	d := &draft{owner: t.w.owner, run: r, fresh: true, changed: true}
	if err := t.insert(insertRun, &d.row, r.ID.String(), r.Caller, d.owner, r.TTL.Milliseconds(), r.Created.UnixMilli()); err != nil {
		return fmt.Errorf("insert run: %w", err)
	}
	var cancelAfter any
	if r.OnDisconnect.Cancel {
		cancelAfter = r.OnDisconnect.After.Milliseconds()
	}
	if _, err := t.exec(insertCall, d.row, r.Key, r.BodyHash, idText(r.RetryOf), r.Method, r.Path, r.Provider, r.Route,
		string(r.Dialect), r.Model, r.Stream, string(r.Kind), r.Operation, r.Turn, tagsText(r.Tags), cancelAfter,
		r.Budget.Attempts, r.Budget.Elapsed.Milliseconds(), r.Budget.CostUSD, r.Budget.Spent, millis(r.Budget.Since)); err != nil {
		return fmt.Errorf("insert call: %w", err)
	}
	if r.Key != "" {
		if _, err := t.exec(insertKey, r.Caller, r.Key, d.row); err != nil {
			return fmt.Errorf("claim key: %w", err)
		}
	}
	if err := t.encrypt(d); err != nil {
		return err
	}
	t.keep(d)
	for _, a := range o.want.Attempts {
		if a.Sent.IsZero() {
			a.Sent = d.run.Created
		}
		if _, err := t.putAttempt(d, a); err != nil {
			return err
		}
	}
	o.run = d.run
	return nil
}

// encrypt gives a new run its data key, where new runs are encrypted.
func (t *tx) encrypt(d *draft) error {
	key, wrapped := t.w.s.keys.fresh(d.run.ID)
	if key == nil {
		return nil
	}
	if _, err := t.exec(insertCipher, d.row, key.name, wrapped); err != nil {
		return fmt.Errorf("insert data key: %w", err)
	}
	d.key, d.run.EncryptedWith = key, key.name
	return nil
}
