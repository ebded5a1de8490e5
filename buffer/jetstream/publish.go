package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer"
)

// errConflict: somebody else has committed since.
var errConflict = errors.New("the subject has changed")

// nonce names a commit, so that it is known again.
func (s *Store) nonce() string { return s.owner + "." + strconv.FormatInt(s.commits.Add(1), 36) }

// isOurs reports whether this node made the commit.
func (s *Store) isOurs(nonce string) bool { return strings.HasPrefix(nonce, s.owner+".") }

// publish stores msgs, all or none, if the last message of their subject is the one at expect, and
// returns the sequence of the last of them. It returns when it knows: nil, or errConflict where another
// commit came first; only its context or Close end it earlier.
//
// A refusal is not believed, since correct writers are refused now and then, nor is silence: the first
// message after expect tells. It is ours, and all is well; it is another's, and ours can never come; or
// there is none, and the same is sent again. Should two of them arrive, the second does not pass.
func (s *Store) publish(ctx context.Context, stream string, expect uint64, nonce string, msgs []*nats.Msg) (uint64, error) {
	size := 0
	for _, m := range msgs {
		size += len(m.Data)
	}
	sending := paceWait * time.Duration(size>>20)
	begun := time.Now()
	for wait := s.patience.first(begun); ; {
		sent := time.Now()
		seq, err := s.send(ctx, msgs, wait+sending)
		if err == nil {
			s.patience.heard(time.Since(sent), time.Now())
			return seq, nil
		}
		refusal, refused := errors.AsType[*apiError](err)
		wait = longer(wait, err)
		if err := s.rest(ctx, err); err != nil {
			return 0, err
		}
		first, err := s.fromLeader(ctx, stream, get{Seq: expect + 1, Next: msgs[0].Subject})
		switch {
		case err == nil && first.Nonce == nonce: // slow as it was, or else it would be looked for each time
			s.patience.heard(time.Since(begun), time.Now())
			return first.seq + uint64(first.Left), nil
		case err == nil:
			return 0, errConflict
		case !errors.Is(err, buffer.ErrNotFound):
			return 0, err
		case refused && full[refusal.Code]:
			return 0, fmt.Errorf("%w: %w", buffer.ErrStorage, refusal)
		case refused && expect > 0 && (refusal.Code == codeWrongSequence || refusal.Code == codeWrongConstant):
			_, err := s.fromLeader(ctx, stream, get{Last: msgs[0].Subject})
			if errors.Is(err, buffer.ErrNotFound) { // all of it has been deleted
				return 0, errConflict
			}
		}
	}
}

// send publishes once. Of a batch only the last message is answered, for all of them.
func (s *Store) send(ctx context.Context, msgs []*nats.Msg, wait time.Duration) (uint64, error) {
	if len(msgs) > 1 {
		batch := s.nonce()
		for _, m := range msgs {
			m.Header.Set(batchHeader, batch)
		}
		for _, m := range msgs[:len(msgs)-1] {
			if err := s.nc.PublishMsg(m); err != nil {
				return 0, err
			}
		}
	}
	answer, err := s.once(ctx, msgs[len(msgs)-1], wait)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error *apiError `json:"error"`
		Seq   uint64    `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("decode acknowledgement: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// purge deletes the messages of subject before seq.
func (s *Store) purge(ctx context.Context, stream, subject string, seq uint64) error {
	answer, err := s.ask(ctx, "$JS.API.STREAM.PURGE."+stream, map[string]any{"filter": subject, "seq": seq})
	if err != nil {
		return err
	}
	var a struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &a); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	if a.Error != nil {
		return fmt.Errorf("purge %s: %w", subject, a.Error)
	}
	return nil
}
