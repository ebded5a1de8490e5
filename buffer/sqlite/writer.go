package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// op is what a request wants of a transaction. It may be carried out again in another one when the
// first did not commit, so it changes nothing but its own result.
type op interface {
	// apply returns a refusal where the request is not possible, before it has changed anything, so
	// that the rest of the batch is not disturbed; or the error that ends the transaction.
	apply(t *tx) (refusal, err error)
}

// writer owns the one connection that writes. Its goroutine commits a batch, shows it, rings, answers,
// and takes what has arrived meanwhile: under load batches grow by themselves, and a lone request
// waits for nothing.
type writer struct {
	s     *Store
	conn  *conn
	owner int64
	// number counts this owner's transactions. Each stores its own, or an arrival, so that the file
	// itself says whether a COMMIT that reported a failure has happened.
	number int64

	arrivals arrivals
	arrival  int64 // the id of the last arrival
	version  int64 // of the file, as this connection sees it: another one's commit changes it
	age      int64 // counts the versions

	args []driver.NamedValue // used again and again
}

const (
	insertOwner   = "INSERT INTO owners (started) VALUES (?) RETURNING id"
	endOwner      = "UPDATE owners SET ended = ? WHERE id = ?"
	markCommit    = "UPDATE owners SET commits = ? WHERE id = ?"
	selectCommits = "SELECT 1 FROM owners WHERE id = ? AND commits = ?"
	selectArrival = "SELECT 1 FROM arrivals WHERE id = ? AND run = ? AND pos = ?"
	selectOwned   = "SELECT 1 FROM runs WHERE run = ? AND owner = ? AND state = ?"
	// selectLastArrival is where the table ends.
	selectLastArrival = "SELECT coalesce(max(id), 0) FROM arrivals"
)

func newWriter(ctx context.Context, s *Store) (*writer, error) {
	c, err := openConn(ctx, openPool(s.dir.file(), 1, append(writerPragmas(s.cfg.Sync), s.keys.pragmas()...)))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	w := &writer{s: s, conn: c, arrivals: arrivals{limit: max(0, min(maxArrivals, s.cfg.Window/4))}}
	s.turn.take()
	defer s.turn.give()
	if _, err := c.scan(insertOwner, []any{s.now().UnixMilli()}, &w.owner); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), c.close())
	}
	if _, err := c.scan(selectLowest, nil, &w.arrivals.gone); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), c.close())
	}
	return w, nil
}

func (w *writer) run() {
	for {
		batch := w.s.queue.take()
		if batch == nil {
			return
		}
		w.commit(batch)
	}
}

// commit answers every request of the batch. When the batch fails as a whole its requests are tried
// one by one: what fails alone has failed.
func (w *writer) commit(batch []*request) {
	err := w.transact(batch)
	if err == nil {
		return
	}
	w.s.log.Error("commit failed", zap.Int("requests", len(batch)), zap.Error(err))
	if errors.Is(err, errUnknown) { // a second try could store the same again
		for _, r := range batch {
			r.answer(err)
		}
		return
	}
	for _, r := range batch {
		if err := w.transact([]*request{r}); err != nil {
			r.answer(fmt.Errorf("%w: %w", buffer.ErrStorage, err))
		}
	}
}

// transact answers all requests of the batch, or returns an error when nothing of it was kept. A
// crash before COMMIT leaves nothing of it, a crash after leaves all.
func (w *writer) transact(batch []*request) error {
	t := w.begin()
	w.s.turn.take()
	refusals, err := t.apply(batch)
	if err == nil {
		err = t.commit()
	}
	w.s.turn.give()
	if err != nil {
		if err = t.undo(err); err != nil {
			return err
		}
	}
	t.show()
	for i, r := range batch {
		r.answer(refusals[i])
	}
	if t.wrote {
		w.s.check.wrote(t.pages())
	}
	if t.checkpoint {
		err = w.s.check.finish(w.conn)
	} else {
		err = w.s.check.keepUp(w.conn)
	}
	if err != nil {
		w.s.log.Warn("checkpoint failed", zap.Error(err))
	}
	return nil
}

// retryPause is the time between two looks at a file that cannot be read.
const retryPause = 100 * time.Millisecond

// kept finds out whether t is in the file. It asks until it knows; only the end of the store makes it
// give up.
func (w *writer) kept(t *tx) (kept, known bool) {
	query, args := selectCommits, []any{w.owner, t.number}
	if d := t.last; d != nil {
		query, args = selectArrival, []any{d.arrival, d.row, d.added[0].Pos}
	}
	for {
		var have bool
		err := w.s.cfg.Fault(AtLook)
		if err == nil {
			have, err = w.conn.scan(query, args, new(int64))
		}
		if err == nil {
			return have, true
		}
		w.s.log.Error("log cannot be read", zap.Error(err))
		if w.s.queue.pause(retryPause) {
			return false, false
		}
	}
}

// publish shows one run, takes note of where its new chunks are, and returns the bell to ring for it; nil
// where there is none.
func (w *writer) publish(d *draft) chan struct{} {
	if !d.changed && !d.settle {
		return nil
	}
	r, bell := w.s.window.publish(d)
	if r == nil {
		return nil
	}
	if d.fresh {
		r.age = w.age
	}
	if d.settle {
		w.arrivals.settled(r)
	}
	if d.arrival > 0 {
		w.arrivals.add(arrival{of: r, id: d.arrival, head: d.run.Head, cost: cost(d.added)})
	}
	return bell
}

// forget drops what memory says of a run.
func (w *writer) forget(id ulid.ULID) {
	if r := w.s.window.runs[id]; r != nil {
		w.arrivals.settled(r)
		w.s.window.forget(id)
	}
}

// end marks the owner as gone by its own will.
func (w *writer) end() error {
	t := w.begin()
	w.s.turn.take()
	defer w.s.turn.give()
	err := t.begin()
	if err == nil {
		_, err = t.exec(endOwner, t.now.UnixMilli(), w.owner)
	}
	if err == nil {
		err = t.commit()
	}
	if err != nil {
		_ = t.rollback() // the connection is closed next
		return fmt.Errorf("end owner: %w", err)
	}
	return nil
}

func (w *writer) close() error { return w.conn.close() }
