package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// heartbeat is how often a server says that it has nothing to tell. After two of them without a word it counts as
// dead, and another is asked: the server of a stream's messages can die without this node's own connection.
const heartbeat = time.Second

// follow reads the last message of each run of shard k into the index, and then every message that is
// stored there, by its headers: a node is told of all commits, and gets the bytes of those that somebody
// reads. It returns when the index has what was stored before.
func (s *Store) follow(ctx context.Context, k int) error {
	js, err := open(s.nc)
	if err != nil {
		return err
	}
	stream := s.layout.runs(k)
	cons, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
		FilterSubjects: []string{s.layout.under(k) + ">"},
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", stream, err)
	}
	caught := make(chan struct{})
	known := sync.OnceFunc(func() { close(caught) })
	if cons.CachedInfo().NumPending == 0 {
		known()
	}
	following, err := cons.Consume(func(m jetstream.Msg) {
		s.deaf[k].Store(false)
		meta, err := m.Metadata()
		if err == nil {
			err = s.told(stream, m, meta.Sequence.Stream)
		}
		if err != nil && s.base.Err() == nil {
			s.log.Warn("message not followed", zap.String("stream", stream), zap.Error(err))
		}
		if meta != nil && meta.NumPending == 0 {
			known()
		}
	}, jetstream.PullHeartbeat(heartbeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		if !s.deaf[k].Swap(true) && s.base.Err() == nil {
			s.log.Warn("stream is not followed: its leader is asked", zap.String("stream", stream), zap.Error(err))
		}
	}))
	if err != nil {
		return fmt.Errorf("follow %s: %w", stream, err)
	}
	s.done.Go(func() {
		<-s.base.Done()
		following.Stop()
		<-following.Closed()
	})
	select {
	case <-caught:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("follow %s: %w", stream, ctx.Err())
	}
}

// toldTries is how often a message that could not be read is tried again, before it is passed over.
const toldTries = 20

// told is noticed for a replica that may tell of a message before its leader has stored it, and for servers that
// do not answer at once: what is passed over here is not heard of again.
func (s *Store) told(stream string, m jetstream.Msg, seq uint64) error {
	err := s.noticed(stream, m, seq)
	for range toldTries {
		if err == nil {
			return nil
		}
		if err = s.reached(s.base, stream, seq); err == nil {
			err = s.noticed(stream, m, seq)
		}
		if errors.Is(err, buffer.ErrNotFound) { // swept: what came after it is told of by itself
			return nil
		}
		if err != nil && s.wait(s.base, unled) != nil {
			return err // the store closes
		}
	}
	return err
}

// noticed takes the headers of one message into the index.
func (s *Store) noticed(stream string, m jetstream.Msg, seq uint64) error {
	e, err := decodeEnvelope(m.Headers())
	if err != nil || e.Left > 0 {
		return err // of a batch the last message tells
	}
	id, err := ulid.ParseStrict(m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:])
	if err != nil {
		return fmt.Errorf("subject %s: %w", m.Subject(), err)
	}
	have, known := s.index.get(id)
	if known && have.seq >= seq {
		return nil
	}
	if e.N > 0 && e.Parts <= 1 {
		s.index.note(id, e.Pos, seq)
	}
	if known && e.Rec == have.rec {
		grown := *have
		grown.seq, grown.run.Head, grown.run.Bytes = seq, e.Head, e.Bytes
		if s.index.set(&grown) {
			s.bells.Ring(id)
		}
		return nil
	}
	last := message{envelope: e, subject: m.Subject(), seq: seq}
	if e.Rec == 0 {
		if last, err = s.fromAny(s.base, stream, get{Seq: seq}); err != nil {
			return err
		}
	}
	v, err := s.versionAt(s.base, stream, last)
	if err != nil {
		return err
	}
	s.learn(v)
	return nil
}
