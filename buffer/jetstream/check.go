package jetstream

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spool-dev/spool/buffer"
)

// Check verifies the stored invariants of the log, which nodes may be using. It returns a line for each
// fault, and changes nothing. It reads all of it.
func Check(ctx context.Context, nc *nats.Conn, name string) ([]string, error) {
	l, err := readLayout(ctx, nc, name)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	js, err := open(nc)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	var faults []string
	for k := range l.Shards {
		c := &checker{runs: map[string]*checked{}}
		if err := c.read(ctx, js, l.runs(k), l.under(k)+">"); err != nil {
			return nil, fmt.Errorf("check %s: %w", l.runs(k), err)
		}
		faults = append(faults, c.finish()...)
	}
	return faults, nil
}

// checker goes through one stream's messages in their order.
type checker struct {
	runs   map[string]*checked
	faults []string
}

// checked is a run so far: where it should go on, and its last record.
type checked struct {
	head, bytes int64
	known       bool // of a run that is swept the beginning is missing
	body        []byte
	last        envelope
	rec         record
}

func (c *checker) fault(subject, format string, args ...any) {
	c.faults = append(c.faults, subject+" "+fmt.Sprintf(format, args...))
}

func (c *checker) read(ctx context.Context, js jetstream.JetStream, stream, filter string) error {
	cons, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}})
	if err != nil {
		return err
	}
	if cons.CachedInfo().NumPending == 0 {
		return nil
	}
	all, err := cons.Messages()
	if err != nil {
		return err
	}
	defer all.Stop()
	for {
		m, err := all.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		c.message(m, meta.Sequence.Stream)
		if meta.NumPending == 0 {
			return nil
		}
	}
}

func (c *checker) message(m jetstream.Msg, seq uint64) {
	got, err := decode(m.Headers(), m.Subject(), seq, m.Data())
	if err != nil {
		c.fault(m.Subject(), "has a message that cannot be read: %v", err)
		return
	}
	r := c.runs[m.Subject()]
	if r == nil {
		r = &checked{}
		c.runs[m.Subject()] = r
	}
	if got.Part == 0 {
		r.body = nil
	}
	r.body = append(r.body, got.body...)
	if got.Parts > 1 && got.Part < got.Parts-1 {
		return
	}
	r.last = got.envelope
	c.pack(m.Subject(), r, pack{envelope: got.envelope, body: r.body})
}

func (c *checker) pack(subject string, r *checked, p pack) {
	if r.known && (p.Pos != r.head || p.Off != r.bytes) {
		c.fault(subject, "goes on at position %d, byte %d, but should at %d, byte %d", p.Pos, p.Off, r.head, r.bytes)
	}
	r.known, r.head, r.bytes = true, p.Pos, p.Off
	if p.N > 0 {
		chunks, err := p.chunks()
		if err != nil {
			c.fault(subject, "%v", err)
			return
		}
		r.head, r.bytes = p.Pos+p.N, chunks[len(chunks)-1].End
	}
	if p.Left > 0 {
		return
	}
	if p.Head != r.head || p.Bytes != r.bytes {
		c.fault(subject, "has head %d and %d bytes, but its chunks end at %d and %d", p.Head, p.Bytes, r.head, r.bytes)
	}
	if p.Rec == 0 {
		before := r.rec
		var err error
		if r.rec, err = p.record(); err != nil {
			c.fault(subject, "%v", err)
			return
		}
		c.record(subject, before.Run, r.rec.Run)
	}
}

// record checks a run's record by itself and against the one before.
func (c *checker) record(subject string, before, r buffer.Run) {
	if before.State != "" && before.State != r.State && !before.State.CanBecome(r.State) {
		c.fault(subject, "was %s and is %s", before.State, r.State)
	}
	if r.State.Ended() != (r.Outcome != "") || r.State.Ended() == r.Ended.IsZero() {
		c.fault(subject, "is %s, ended at %s with outcome %q", r.State, r.Ended, r.Outcome)
	}
	if r.Outcome == buffer.Completed && r.Reason != "" {
		c.fault(subject, "is completed for the reason %s", r.Reason)
	}
	if r.State.Ended() && slices.ContainsFunc(r.Attempts, func(a buffer.Attempt) bool { return a.Ended.IsZero() }) {
		c.fault(subject, "has ended, but an attempt is open")
	}
}

// finish says what is wrong with the runs as they are at the end.
func (c *checker) finish() []string {
	for subject, r := range c.runs {
		if r.last.Left > 0 {
			c.fault(subject, "ends within a commit")
		}
		if (r.head > 0 || r.rec.Run.State == buffer.Streaming) && r.rec.Run.Sends == 0 {
			c.fault(subject, "has chunks, but no attempt was sent")
		}
	}
	slices.Sort(c.faults)
	return c.faults
}
