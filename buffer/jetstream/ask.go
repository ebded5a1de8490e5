package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer"
)

// The servers' codes for what callers here tell apart.
const (
	codeNoMessage     = 10037
	codeNoStream      = 10059
	codeWrongSequence = 10071
	codeWrongConstant = 10164
)

// full are the codes that say that there is no room: nothing was stored, and nothing will be soon.
var full = map[int]bool{10023: true, 10047: true, 10077: true}

// apiError is a server's refusal.
type apiError struct {
	Code int    `json:"err_code"`
	Text string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// message is one that is stored.
type message struct {
	envelope
	subject string
	seq     uint64
	body    []byte
}

// get is a question for one message: the last of a subject, the next of one from seq on, or seq itself.
type get struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

// ask sends a question until there is an answer, its context ends, or the store closes. It must be one
// that can be asked twice.
func (s *Store) ask(ctx context.Context, subject string, question any) (*nats.Msg, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	for wait := s.patience.first(time.Now()); ; {
		answer, err := s.once(ctx, &nats.Msg{Subject: subject, Data: data}, wait)
		if err == nil {
			return answer, nil
		}
		wait = longer(wait, err)
		if err := s.rest(ctx, err); err != nil {
			return nil, err
		}
	}
}

// once sends a request and waits for its answer, no longer than wait, and not beyond the connection.
func (s *Store) once(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(s.line.lasts(), cancel)()
	return s.nc.RequestMsgWithContext(bounded, m)
}

// silent reports whether a request has waited for its answer in vain.
func silent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// rest pauses after a request without an answer, and says why there is to be no other.
func (s *Store) rest(ctx context.Context, err error) error {
	switch {
	case s.base.Err() != nil, errors.Is(err, nats.ErrConnectionClosed):
		return buffer.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case silent(err):
		return nil // it has waited
	}
	t := time.NewTimer(unled)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.base.Done():
	}
	return nil
}

// fromLeader asks the stream's leader, who knows all that was ever acknowledged. ErrNotFound where
// there is no such message.
func (s *Store) fromLeader(ctx context.Context, stream string, q get) (message, error) {
	for {
		answer, err := s.ask(ctx, "$JS.API.STREAM.MSG.GET."+stream, q)
		if err != nil {
			return message{}, err
		}
		var a struct {
			Error   *apiError `json:"error"`
			Message struct {
				Subject string `json:"subject"`
				Seq     uint64 `json:"seq"`
				Header  []byte `json:"hdrs"`
				Data    []byte `json:"data"`
			} `json:"message"`
		}
		if err := json.Unmarshal(answer.Data, &a); err != nil {
			return message{}, fmt.Errorf("decode message of %s: %w", stream, err)
		}
		switch {
		case a.Error == nil:
			h, err := nats.DecodeHeadersMsg(a.Message.Header)
			if err != nil {
				return message{}, fmt.Errorf("decode headers: %w", err)
			}
			return decode(h, a.Message.Subject, a.Message.Seq, a.Message.Data)
		case a.Error.Code == codeNoMessage:
			return message{}, buffer.ErrNotFound
		case a.Error.Code == codeNoStream:
			return message{}, fmt.Errorf("stream %s: %w", stream, a.Error)
		}
		if err := s.rest(ctx, a.Error); err != nil {
			return message{}, err
		}
	}
}

// fromAny asks whichever server is near: what it has is true, what it lacks may have come since. Then
// the leader is asked.
func (s *Store) fromAny(ctx context.Context, stream string, q get) (message, error) {
	answer, err := s.ask(ctx, "$JS.API.DIRECT.GET."+stream, q)
	if err != nil {
		return message{}, err
	}
	if answer.Header.Get("Status") != "" {
		return s.fromLeader(ctx, stream, q)
	}
	seq, err := strconv.ParseUint(answer.Header.Get(seqHeader), 10, 64)
	if err != nil {
		return message{}, fmt.Errorf("message of %s without its sequence: %w", stream, err)
	}
	return decode(answer.Header, answer.Header.Get("Nats-Subject"), seq, answer.Data)
}

// streamState is what a stream's leader says of it.
type streamState struct {
	Last     uint64            `json:"last_seq"`
	Subjects map[string]uint64 `json:"subjects"` // those that were asked for
}

func (s *Store) state(ctx context.Context, stream, subjects string) (streamState, error) {
	var a struct {
		Error *apiError   `json:"error"`
		State streamState `json:"state"`
	}
	answer, err := s.ask(ctx, "$JS.API.STREAM.INFO."+stream, map[string]string{"subjects_filter": subjects})
	if err != nil {
		return a.State, err
	}
	if err := json.Unmarshal(answer.Data, &a); err != nil {
		return a.State, fmt.Errorf("decode state of %s: %w", stream, err)
	}
	if a.Error != nil {
		return a.State, fmt.Errorf("state of %s: %w", stream, a.Error)
	}
	return a.State, nil
}

// reached waits until the stream's leader has stored all up to seq.
func (s *Store) reached(ctx context.Context, stream string, seq uint64) error {
	for {
		state, err := s.state(ctx, stream, "")
		_, refused := errors.AsType[*apiError](err) // there is no leader yet
		if err == nil && state.Last >= seq || err != nil && !refused {
			return err
		}
		if err := s.wait(ctx, unled); err != nil {
			return err
		}
	}
}

func decode(h nats.Header, subject string, seq uint64, body []byte) (message, error) {
	e, err := decodeEnvelope(h)
	if err == nil && e.CRC != crc32.Checksum(body, castagnoli) {
		err = fmt.Errorf("its checksum is not %08x", e.CRC)
	}
	if err != nil {
		return message{}, fmt.Errorf("message %d of %s: %w", seq, subject, err)
	}
	return message{envelope: e, subject: subject, seq: seq, body: body}, nil
}

// whole is the pack that m is a part of.
func (s *Store) whole(ctx context.Context, stream string, m message) (pack, error) {
	p := pack{envelope: m.envelope, body: m.body}
	if m.Parts <= 1 {
		return p, nil
	}
	p.body = nil
	for i := range uint64(m.Parts) {
		part := m
		if at := m.seq - uint64(m.Part) + i; at != m.seq {
			var err error
			if part, err = s.fromAny(ctx, stream, get{Seq: at}); err != nil {
				return pack{}, fmt.Errorf("part %d of the pack at message %d: %w", i, m.seq, err)
			}
		}
		if part.Nonce != m.Nonce {
			return pack{}, fmt.Errorf("part %d of the pack at message %d is another's", i, m.seq)
		}
		p.body = append(p.body, part.body...)
	}
	return p, nil
}
