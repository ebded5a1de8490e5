package buffer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// Next is the run after a commit at a time: in state to, with the facts of c, but for its head. Whether
// it may become that is for Admits and Ending to say. Nothing is changed in place: readers share r's.
func (r Run) Next(to State, c Closing, at time.Time) Run {
	r = r.with(c)
	if r.State == Idle && to != Idle && to != Failed {
		r.Committed = at
	}
	if r.State.Live() && to.Ended() {
		r.Outcome, r.Ended = to, at
	}
	if to == Completed {
		r.Reason = ""
	}
	if to == Released {
		r.Released = at
	}
	r.State = to
	return r
}

// with is r with the facts of c. Notes add up.
func (r Run) with(c Closing) Run {
	if c.Status != 0 {
		r.Status = c.Status
	}
	if c.Header != nil {
		r.Header = c.Header.Clone()
	}
	if c.Framing != "" {
		r.Framing = c.Framing
	}
	if c.ProviderID != "" {
		r.ProviderID = c.ProviderID
	}
	if c.Reason != "" {
		r.Reason = c.Reason
	}
	if c.Partial != nil {
		r.Partial = c.Partial
	}
	if c.Usage != nil {
		u := *c.Usage
		r.Usage = &u
	}
	for _, note := range c.Notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(slices.Clip(r.Notes), note)
		}
	}
	return r
}

// Admits says why the log may not commit the transition to state to with c; nil where it may. A run
// that has ended admits nothing: ErrSealed.
func (r Run) Admits(to State, c Closing) error {
	switch {
	case !r.State.Live():
		return ErrSealed
	case !r.State.CanBecome(to):
		return fmt.Errorf("append: run is %s and cannot become %q", r.State, to)
	case to == Completed && c.Reason != "":
		return fmt.Errorf("append: a completed run has no reason, not %s", c.Reason)
	case c.Attempt != nil:
		return c.Attempt.Valid()
	}
	return nil
}

// Ending is the state in which the run is closed from outside when want is asked for, or to which it
// is released. done says that it is as wanted already; else it is refused, ErrLive for the release of
// a live run.
func (r Run) Ending(want State) (to State, done bool, err error) {
	to = r.State.Stopped(want)
	switch {
	case want == Released && r.State.Live():
		return to, false, ErrLive
	case r.State == Released, r.State.Ended() && want != Released:
		return r.State, true, nil
	case !to.Ended() || !r.State.CanBecome(to):
		return to, false, fmt.Errorf("seal: run is %s and cannot become %q", r.State, to)
	case to == Completed:
		return to, false, fmt.Errorf("seal: only the log itself can end as %s", to)
	}
	return to, false, nil
}

// Creatable says what keeps a run from being created, whatever there is already.
func (r *Run) Creatable() error {
	switch {
	case r.State != Idle:
		return fmt.Errorf("it is %q, and runs start as %s", r.State, Idle)
	case r.ID == (ulid.ULID{}):
		return errors.New("it has no id")
	case r.TTL < 0:
		return fmt.Errorf("negative TTL %s", r.TTL)
	}
	for _, a := range r.Attempts {
		if err := a.Valid(); err != nil {
			return err
		}
	}
	return nil
}

// Valid says what is wrong with the row by itself.
func (a Attempt) Valid() error {
	if a.N < 1 {
		return fmt.Errorf("attempt %d: they count from 1", a.N)
	}
	return nil
}
