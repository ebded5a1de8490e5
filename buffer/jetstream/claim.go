package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/spool-dev/spool/buffer"
)

// claim is what a key's message says: the run that the key names, as it is created.
type claim struct {
	record
	nonce string // of the run's first commit
	seq   uint64 // of the claim; 0 before it is made
}

// keySubject is where the claims of a caller's key are, one after the other.
func (s *Store) keySubject(caller, key string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(caller)) + ":" + caller + key))
	return s.layout.Name + ".key." + hex.EncodeToString(sum[:])
}

// claim takes the key for c. It loses with ErrExists, and the run that holds the id or the key.
func (s *Store) claim(ctx context.Context, c *claim) (version, error) {
	switch held, err := s.load(ctx, c.Run.ID); {
	case err == nil:
		return held, buffer.ErrExists
	case !errors.Is(err, buffer.ErrNotFound):
		return version{}, err
	}
	subject := s.keySubject(c.Run.Caller, c.Run.Key)
	rec, err := c.record.encode()
	if err != nil {
		return version{}, err
	}
	for {
		held, seq, err := s.holder(ctx, c.Run.Caller, c.Run.Key)
		if err == nil && held.Run.ID != c.Run.RetryOf {
			return held, buffer.ErrExists
		}
		if err != nil && !errors.Is(err, buffer.ErrNotFound) {
			return version{}, err
		}
		msgs, err := messages(subject, seq, packs(0, 0, nil, rec), envelope{Nonce: c.nonce})
		if err != nil {
			return version{}, err
		}
		if len(msgs) > 1 {
			return version{}, fmt.Errorf("create run: what it says of its call is larger than %d bytes", maxBody)
		}
		c.seq, err = s.publish(ctx, s.layout.keys(), seq, c.nonce, msgs)
		if !errors.Is(err, errConflict) {
			return version{}, err
		}
	}
}

// holder returns the run that the key names now, or ErrNotFound, and the sequence of the key's last
// message, 0 where there is none. A claim whose creator got no further is fulfilled here.
func (s *Store) holder(ctx context.Context, caller, key string) (version, uint64, error) {
	m, err := s.fromLeader(ctx, s.layout.keys(), get{Last: s.keySubject(caller, key)})
	if err != nil {
		return version{}, 0, err
	}
	c := claim{nonce: m.Nonce, seq: m.seq}
	if c.record, err = (pack{envelope: m.envelope, body: m.body}).record(); err != nil {
		return version{}, m.seq, fmt.Errorf("claim at message %d: %w", m.seq, err)
	}
	held, err := s.load(ctx, c.Run.ID)
	if errors.Is(err, buffer.ErrNotFound) && s.now().Before(c.Run.Created.Add(buffer.KeyTTL)) {
		held, err = s.begin(ctx, c)
	}
	switch {
	case errors.Is(err, errConflict):
		held, err = s.load(ctx, c.Run.ID)
	case err != nil:
		return version{}, m.seq, err
	}
	if err == nil && (held.Run.Caller != caller || held.Run.Key != key) {
		err = buffer.ErrNotFound // the id went to another: the claim is void
	}
	return held, m.seq, err
}

// unclaim frees the key of r, if its last message is still the one at seq.
func (s *Store) unclaim(ctx context.Context, r buffer.Run, seq uint64) error {
	return s.purge(ctx, s.layout.keys(), s.keySubject(r.Caller, r.Key), seq+1)
}
