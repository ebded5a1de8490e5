package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
)

// version is a run after one of its commits.
type version struct {
	record        // with Head and Bytes of the commit
	seq    uint64 // of the commit's last message; 0 before the first
	first  uint64 // of the first message of that message's pack
	rec    uint64 // where the record is
	nonce  string // of the commit
}

// draft is what a commit makes of a version.
type draft struct {
	record
	chunks [][]byte
	same   bool // the record is as it was, but for head and bytes
}

// errUnchanged ends a change that has nothing to do.
var errUnchanged = errors.New("nothing to change")

// load reads the run's last version from the leader of its stream.
func (s *Store) load(ctx context.Context, id ulid.ULID) (version, error) {
	stream, subject := s.layout.place(id)
	m, err := s.fromLeader(ctx, stream, get{Last: subject})
	if err != nil {
		return version{}, s.readError("run "+id.String(), err)
	}
	v, err := s.versionAt(ctx, stream, m)
	if err != nil {
		return version{}, s.readError("run "+id.String(), err)
	}
	s.learn(v)
	return v, nil
}

// versionAt is the version that the last message of a commit made.
func (s *Store) versionAt(ctx context.Context, stream string, m message) (version, error) {
	v := version{seq: m.seq, first: m.seq - uint64(m.Part), rec: m.Rec, nonce: m.Nonce}
	holds := m
	if v.rec == 0 {
		v.rec = m.seq
	} else {
		var err error
		if holds, err = s.fromAny(ctx, stream, get{Seq: v.rec}); err != nil {
			return v, fmt.Errorf("record at message %d: %w", v.rec, err)
		}
	}
	p, err := s.whole(ctx, stream, holds)
	if err != nil {
		return v, err
	}
	if v.record, err = p.record(); err != nil {
		return v, err
	}
	v.Run.Head, v.Run.Bytes = m.Head, m.Bytes
	return v, nil
}

// change commits what next makes of the run's version, from is which one is thought to be the last. On a
// conflict next is asked again, with the one that is. An error of next is returned as it is;
// errUnchanged is none.
func (s *Store) change(ctx context.Context, from version, next func(version) (draft, error)) (version, error) {
	for {
		if err := s.closed(); err != nil {
			return from, err
		}
		d, err := next(from)
		if errors.Is(err, errUnchanged) {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		v, err := s.commit(ctx, from, d, s.nonce())
		if !errors.Is(err, errConflict) {
			return v, err
		}
		if from, err = s.load(ctx, d.Run.ID); err != nil {
			return from, err
		}
	}
}

// update is change from the version that the leader has now, by somebody who is not the run's owner.
func (s *Store) update(ctx context.Context, id ulid.ULID, next func(version) (draft, error)) (version, error) {
	v, err := s.load(ctx, id)
	if err != nil {
		return v, err
	}
	return s.change(ctx, v, func(v version) (draft, error) {
		if v.Run.State.Live() {
			s.halt(id)
		}
		return next(v)
	})
}

// commit publishes a draft as what follows from. Then, and not before, this node knows of it.
func (s *Store) commit(ctx context.Context, from version, d draft, nonce string) (version, error) {
	stream, subject := s.layout.place(d.Run.ID)
	common := envelope{Nonce: nonce, Head: d.Run.Head + int64(len(d.chunks)), Bytes: d.Run.Bytes, Rec: from.rec}
	for _, c := range d.chunks {
		common.Bytes += int64(len(c))
	}
	var rec []byte
	if !d.same {
		var err error
		if rec, err = d.record.encode(); err != nil {
			return from, err
		}
		common.Rec = 0
	}
	all := packs(d.Run.Head, d.Run.Bytes, d.chunks, rec)
	msgs, err := messages(subject, from.seq, all, common)
	if err != nil {
		return from, err
	}
	seq, err := s.publish(ctx, stream, from.seq, nonce, msgs)
	if err != nil {
		return from, err
	}
	if len(d.chunks) > 0 {
		s.index.note(d.Run.ID, d.Run.Head, seq+1-uint64(len(msgs)))
	}
	last := len(all[len(all)-1].body)
	v := version{record: d.record, seq: seq, first: seq - uint64(max(0, (last-1)/maxBody)), rec: common.Rec, nonce: nonce}
	if v.rec == 0 {
		v.rec = seq
	}
	v.Run.Head, v.Run.Bytes = common.Head, common.Bytes
	s.learn(v)
	return v, nil
}

// learn puts a version into the index, and wakes who waits for it.
func (s *Store) learn(v version) {
	if !s.index.put(v) {
		return
	}
	s.bells.Ring(v.Run.ID)
	if !v.Run.State.Live() {
		s.seals.end(v.Run.ID, s.isOurs(v.nonce))
	}
}

// moved is the record after a transition; an open row of an ended run's ledger gets its end.
func (s *Store) moved(r record, to buffer.State, c buffer.Closing) record {
	before := r.Run.State
	now := s.now()
	r.Run = r.Run.Next(to, c, now)
	if c.Attempt != nil {
		r.Run = withAttempt(r.Run, *c.Attempt)
	}
	if before.Live() && to.Ended() {
		r.Run.Attempts = slices.Clone(r.Run.Attempts)
		for i := range r.Run.Attempts {
			if a := &r.Run.Attempts[i]; a.Ended.IsZero() {
				a.Ended, a.Billed = now, policy.BilledUnknown
			}
		}
	}
	return r
}

// withAttempt is r with the row, new or again.
func withAttempt(r buffer.Run, a buffer.Attempt) buffer.Run {
	if a.Billed == "" {
		a.Billed = policy.BilledUnknown
	}
	r.Attempts = slices.Clone(r.Attempts)
	at, found := slices.BinarySearchFunc(r.Attempts, a.N, func(have buffer.Attempt, n int) int { return have.N - n })
	if found {
		r.Attempts[at] = a
	} else {
		r.Attempts = slices.Insert(r.Attempts, at, a)
	}
	r.Sends = len(r.Attempts)
	return r
}
