package buffer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spool-dev/spool/buffer/provider"
)

const (
	// What comes before the first content is held back within these bounds; beyond them it is
	// stored and shown as it is.
	maxHeldChunks = 64
	maxHeldBytes  = 256 << 10
	// settle is how long a chunk that looks like the last one waits for the end of the body, so
	// that the two commit together. No other chunk ever waits.
	settle = 25 * time.Millisecond
)

// ending is how one attempt ended and what had been seen by then.
type ending struct {
	row       Attempt
	head      *head // nil where no answer came
	body      []byte
	verdict   provider.Verdict
	delivered bool
	alarm     alarm
	ours      bool    // it was the budget that ran out, not the route's clock
	err       error   // what broke: of the send, the body, or the framing; nil for a clean end
	opening   Closing // what the first commit has to say; empty where it was made
	pending   [][]byte
	partial   []byte
}

// stream is one attempt's answer while it comes. The drain's goroutine owns it.
type stream struct {
	d      *drain
	row    Attempt
	clocks clocks
	timer  LazyTimer // of the clock that runs out next
	head   *head
	reader *provider.Reader

	pending   [][]byte // received, not committed
	size      int      // bytes of pending
	total     int64    // bytes of the answer so far
	events    int64    // chunks of it
	content   bool     // there was content, or the proof of an end without any
	failed    bool     // the provider told its own error in the stream
	committed bool     // something is in the log
	settleAt  time.Time
	settled   bool
}

// attempt makes one physical send, with its ledger row committed before, and follows the answer to
// its end. It reports whether another attempt is to be made, and after what wait. While it waits its stack
// and those of exchange and follow are all that a live run has of one, so they keep nothing large there.
func (d *drain) attempt(ctx context.Context, from *entry) (wait time.Duration, again bool) {
	if !from.stored && !d.record(ctx, &from.row) {
		return 0, false // and nothing was sent
	}
	// A crash here leaves an open row of a request that never left.
	e, err := d.newStream(from).exchange(ctx)
	if err != nil {
		d.unstored(ctx, err)
		return 0, false
	}
	return d.conclude(ctx, e)
}

func (d *drain) newStream(from *entry) *stream {
	s := &stream{d: d, row: from.row}
	if d.first.IsZero() {
		d.first = s.row.Sent
	}
	set := d.way.route.Clocks.WithDefaults(d.started.Dialect, d.way.model, d.started.Stream)
	set.Total = d.way.primary.Clocks.Total // the run's own, whichever route it takes
	s.clocks = clocks{set: set, wire: provider.NewWire(), begun: s.row.Sent, first: d.first}
	if s.row.N > 1 || d.started.Budget.Elapsed != DefaultElapsed { // a first attempt may think for longer than the default
		s.clocks.until = d.started.Budget.ends()
	}
	return s
}

// exchange sends the request and follows what comes. Its error is the log's.
func (s *stream) exchange(ctx context.Context) (*ending, error) {
	sending, hangUp := context.WithCancel(ctx)
	arrivals := s.d.rs.inboxes.enter()
	defer s.d.rs.inboxes.leave()
	var receiver sync.WaitGroup
	receiver.Go(func() { s.d.receive(sending, s.clocks.wire, arrivals) })
	e, err := s.follow(ctx, arrivals)
	hangUp()
	receiver.Wait()
	if err == nil {
		e.row.ReusedConn, e.row.RequestBytes = s.clocks.wire.Reused(), s.clocks.wire.Written()
	}
	return e, err
}

// follow takes what arrives until the attempt has ended. Its error is the log's.
func (s *stream) follow(ctx context.Context, arrivals *inbox) (*ending, error) {
	defer s.timer.Stop()
	wrote := s.clocks.wire.Wrote()
	sealed := s.d.log.Sealed()
	for {
		name, at := s.due()
		select {
		case <-arrivals.filled:
			if e, err := s.empty(ctx, arrivals); e != nil || err != nil {
				return e, err
			}
		case <-wrote: // from now on the provider is the one to be waited for
			wrote = nil
			if s.head == nil {
				s.d.phase.set(phaseHeaders)
			}
		case <-s.timer.At(at):
			if !s.timer.Over(at) {
				continue
			}
			if e, err := s.ring(ctx, name); e != nil || err != nil {
				return e, err
			}
		case <-sealed: // by another process: the provider need not go on, and what the end was is in the log already
			return nil, ErrSealed
		case <-ctx.Done():
			return s.end(context.Cause(ctx), noAlarm), nil
		}
	}
}

// due is what runs out next and when; noAlarm is the wait for the end of the body.
func (s *stream) due() (alarm, time.Time) {
	name, at := s.clocks.next()
	if !s.settleAt.IsZero() && (at.IsZero() || s.settleAt.Before(at)) {
		return noAlarm, s.settleAt
	}
	return name, at
}

// empty takes what is in the inbox.
func (s *stream) empty(ctx context.Context, arrivals *inbox) (*ending, error) {
	a, ok := arrivals.take()
	if !ok {
		return nil, nil
	}
	return s.take(ctx, &a)
}

// ring is called when the clock that was armed has run out. Bytes may have moved it meanwhile.
func (s *stream) ring(ctx context.Context, name alarm) (*ending, error) {
	if name == noAlarm {
		s.settled, s.settleAt = true, time.Time{}
		return nil, s.commit(ctx)
	}
	if now, at := s.clocks.next(); now != name || time.Now().Before(at) {
		return nil, nil
	}
	e := s.end(nil, name)
	e.ours = !s.clocks.until.IsZero() && !time.Now().Before(s.clocks.until)
	return e, nil
}

// take handles what has arrived: it reads each chunk's meaning, commits what may be shown, and says
// when the attempt is over.
func (s *stream) take(ctx context.Context, a *arrival) (*ending, error) {
	if a.head != nil {
		s.begin(a.head)
	}
	if s.head == nil { // the send itself broke
		return s.end(a.err, noAlarm), nil
	}
	if len(s.pending) == 0 {
		s.pending = a.chunks[:0] // read puts the same chunks there again, one by one
	}
	for _, chunk := range a.chunks {
		if o := s.over(chunk); o != "" { // what came with it depends on reads, what is stored does not
			return s.end(o, noAlarm), nil
		}
		s.read(chunk)
	}
	switch {
	case a.err != nil:
		return s.ended(a), nil
	case !s.head.success():
		return nil, nil
	case s.failed && !s.content:
		return s.end(nil, noAlarm), nil
	case !s.content && len(s.pending) <= maxHeldChunks && s.size <= maxHeldBytes:
		return nil, nil
	case !s.clocks.finish.IsZero() && !s.settled:
		if s.settleAt.IsZero() {
			s.settleAt = time.Now().Add(settle)
		}
		return nil, nil
	}
	return nil, s.commit(ctx)
}

// over is the limit that one more chunk would go over; empty for none. A refusal has a bound of its own.
func (s *stream) over(chunk []byte) overError {
	switch {
	case !s.head.success():
		return ""
	case s.total+int64(len(chunk)) > s.d.cfg.MaxRun:
		return overRun
	case s.events == s.d.cfg.MaxEvents:
		return overEvents
	}
	return ""
}

// ended is the end of the attempt with its body.
func (s *stream) ended(a *arrival) *ending {
	e := s.end(a.err, noAlarm)
	if !s.head.success() && len(e.body) == 0 {
		e.body = a.partial // a refusal that was cut is told as far as it came
		return e
	}
	e.partial = a.partial
	return e
}

func (s *stream) begin(h *head) {
	s.head = h
	s.row.Status = h.Status
	s.row.RequestID = provider.RequestID(h.Header)
	s.clocks.head = time.Now()
	s.row.FirstByte = s.clocks.head.Sub(s.row.Sent)
	s.reader = provider.NewReader(s.d.started.Dialect, h.framing, s.d.started.Stream)
	s.d.phase.set(phaseContent)
}

// read notes what one chunk means for the boundary, the clocks and the end.
func (s *stream) read(chunk []byte) {
	s.pending = append(s.pending, chunk)
	s.size += len(chunk)
	s.total += int64(len(chunk))
	s.events++
	if !s.head.success() {
		return
	}
	m := s.reader.Read(chunk)
	if m.Content || m.Finish || m.Final {
		if !s.content && !s.failed {
			s.content = true
			s.row.PreambleBytes = s.total - int64(len(chunk))
		}
	}
	if m.Content {
		s.clocks.content = time.Now()
		if !m.Finish && !m.Final && !s.failed {
			s.clocks.finish, s.settleAt, s.settled = time.Time{}, time.Time{}, false
		}
	}
	if m.Failed {
		s.failed = true
	}
	if (m.Finish || m.Final || m.Failed) && s.clocks.finish.IsZero() {
		s.clocks.finish = time.Now()
	}
}

// commit appends what is pending to the live log. The first commit tells what the provider's head
// said; readers see nothing before it.
func (s *stream) commit(ctx context.Context) error {
	s.settleAt = time.Time{}
	if len(s.pending) == 0 {
		return nil
	}
	var c Closing
	if !s.committed {
		c = s.opening()
	}
	begun := time.Now()
	err := s.keep(ctx, c)
	s.committed = true
	s.d.forget() // after the first content nothing is ever sent again
	s.clocks.resume(begun)
	s.pending, s.size = nil, 0
	return err
}

// keep gives what is pending to the log, or to memory once the log has refused.
func (s *stream) keep(ctx context.Context, c Closing) error {
	if s.d.rest != nil {
		return s.d.rest.add(s.pending)
	}
	err := s.d.commit(ctx, s.pending, Streaming, c)
	if err == nil {
		s.d.rs.stored.add(len(s.pending), s.size)
	}
	if errors.Is(err, ErrStorage) {
		return s.d.goOn(ctx, s.pending, c, err)
	}
	return err
}

// opening is what the answer's head and its first chunks say about the run.
func (s *stream) opening() Closing {
	return Closing{
		Status:     s.head.Status,
		Header:     provider.EndToEnd(s.head.Header),
		Framing:    s.head.framing,
		ProviderID: s.reader.Verdict(false).ProviderID,
	}
}

// end sums the attempt up. err is io.EOF for a body that ended, else what broke or stopped it.
func (s *stream) end(err error, a alarm) *ending {
	e := &ending{row: s.row, head: s.head, alarm: a, err: err, pending: s.pending, delivered: s.content || s.committed}
	if s.head == nil {
		return e
	}
	if !s.head.success() {
		e.body = join(s.pending)
		return e
	}
	e.verdict = s.reader.Verdict(s.head.cleanEnd(err))
	if !e.delivered && e.verdict.Proven { // an answer without any content is shown with its proof
		e.delivered = true
		e.row.PreambleBytes = s.total
	}
	if !e.delivered {
		e.row.PreambleBytes = s.total
	}
	e.row.ContentBytes = s.total - e.row.PreambleBytes
	e.row.Usage = e.verdict.Usage
	if e.delivered && !s.committed {
		e.opening = s.opening()
	}
	return e
}

func join(chunks [][]byte) []byte {
	var b []byte
	for _, c := range chunks {
		b = append(b, c...)
	}
	return b
}
