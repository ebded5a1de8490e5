package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// Create implements buffer.Store. The key is claimed first, by a message that has all of the run in it:
// a crash here leaves a claim without its run, and whoever finds the claim creates the run from it. If
// the context ends first, the run may exist all the same, without anybody to append to it: Seal ends it.
func (s *Store) Create(ctx context.Context, r buffer.Run) (buffer.Log, buffer.Run, error) {
	if err := r.Creatable(); err != nil {
		return nil, buffer.Run{}, fmt.Errorf("create run: %w", err)
	}
	if err := s.closed(); err != nil {
		return nil, buffer.Run{}, err
	}
	c := claim{record: record{Run: fresh(r, s.now()), Owner: s.owner}, nonce: s.nonce()}
	if r.Key != "" {
		held, err := s.claim(ctx, &c)
		if err != nil {
			return nil, held.Run, err
		}
	}
	v, err := s.begin(ctx, c)
	if errors.Is(err, errConflict) {
		held, err := s.taken(ctx, c)
		return nil, held.Run, err
	}
	if err != nil {
		return nil, buffer.Run{}, err
	}
	return s.newLog(v), listed(v.Run), nil
}

// newLog is this node's right to append to a run that it has created.
func (s *Store) newLog(v version) *runLog {
	l := &runLog{s: s, sealed: s.seals.begin(v.Run.ID), at: v}
	if e, known := s.index.get(v.Run.ID); known && !e.run.State.Live() { // elsewhere, before there was a seal
		s.seals.end(v.Run.ID, false)
	}
	return l
}

// fresh is r as it is created: with nothing that comes later but the first rows of its ledger.
func fresh(r buffer.Run, now time.Time) buffer.Run {
	run := buffer.Run{
		ID: r.ID, Caller: r.Caller, Key: r.Key, BodyHash: r.BodyHash, RetryOf: r.RetryOf,
		Method: r.Method, Path: r.Path, Provider: r.Provider, Route: r.Route, Dialect: r.Dialect, Model: r.Model,
		Stream: r.Stream, Kind: r.Kind, Operation: r.Operation, Turn: r.Turn, Tags: maps.Clone(r.Tags),
		OnDisconnect: r.OnDisconnect, TTL: r.TTL, Budget: r.Budget, State: r.State, Created: now,
	}
	for _, a := range r.Attempts {
		if a.Sent.IsZero() {
			a.Sent = now
		}
		run = withAttempt(run, a)
	}
	return run
}

// begin creates the claim's run, or finds that somebody else has done so for it. errConflict: the id is
// another run's.
func (s *Store) begin(ctx context.Context, c claim) (version, error) {
	return s.commit(ctx, version{}, draft{record: c.record}, c.nonce)
}

// taken gives the claim up for the run that has its id.
func (s *Store) taken(ctx context.Context, c claim) (version, error) {
	if c.seq > 0 {
		if err := s.unclaim(ctx, c.Run, c.seq); err != nil {
			return version{}, err
		}
	}
	held, err := s.load(ctx, c.Run.ID)
	if err != nil {
		return held, err
	}
	return held, buffer.ErrExists
}
