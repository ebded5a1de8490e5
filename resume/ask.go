// Package resume decides which run a reader means and from where it reads: from ids, keys, the id
// of an event, a sequence number or a byte offset to one open tail. The decision is one table, the
// same on every route.
package resume

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrBadPosition: what was given as a position is none. Its wrapping names the field and what is
// allowed.
var ErrBadPosition = errors.New("bad position")

// Ask is what a reader gave, as text; empty is not given. Given marks texts that were there though
// empty, which is not the same.
type Ask struct {
	From          Text
	FromByte      Text
	LastEventID   Text
	StartingAfter Text
	Follow        Text
	Wait          Text
	Partial       Text
}

// Text is one value of a query or a header, and whether it was there at all.
type Text struct {
	Value string
	Given bool
}

// Given returns a Text that was there.
func Given(v string) Text { return Text{Value: v, Given: true} }

// unit is what a start counts in.
type unit int

const (
	positions unit = iota
	bytes
	sequence
	atTail
)

// MaxWait bounds a long poll.
const MaxWait = 5 * time.Minute

// Start is where and how a reader wants to read, understood but not yet looked up.
type Start struct {
	unit   unit
	n      int64
	given  bool          // the reader named it
	event  bool          // … by the id of the last event that it has
	Follow bool          // go on with what comes; else only what is stored now
	Wait   time.Duration // long poll: how long to wait for one chunk; 0 is no long poll
	// Partial asks for the broken tail of a cut answer too.
	Partial bool
}

// FromPosition starts at position n and follows.
func FromPosition(n int64) Start { return Start{n: n, Follow: true} }

// FromTail starts at the head and follows.
func FromTail() Start { return Start{unit: atTail, Follow: true} }

// Understand reads an ask about the run with the given id. The id of an event outranks the query;
// of the query's positions one at most may be given. Its error wraps ErrBadPosition.
func Understand(run string, a Ask) (Start, error) {
	s := Start{Follow: true}
	if err := s.options(a); err != nil {
		return s, err
	}
	if a.LastEventID.Given {
		n, err := eventID(run, a.LastEventID.Value)
		s.n, s.given, s.event = min(n, math.MaxInt64-1)+1, true, true
		return s, err
	}
	fields := []struct {
		name string
		text Text
		unit unit
	}{{"from", a.From, positions}, {"from_byte", a.FromByte, bytes}, {"starting_after", a.StartingAfter, sequence}}
	chosen := ""
	for _, f := range fields {
		if !f.text.Given {
			continue
		}
		if chosen != "" {
			return s, fmt.Errorf("%w: %s and %s cannot both be given", ErrBadPosition, chosen, f.name)
		}
		chosen, s.unit, s.given = f.name, f.unit, true
		if f.unit == positions && f.text.Value == "tail" {
			s.unit = atTail
			continue
		}
		n, err := whole(f.name, f.text.Value)
		if err != nil {
			return s, err
		}
		s.n = n
	}
	return s, nil
}

func (s *Start) options(a Ask) error {
	for _, o := range []struct {
		name string
		text Text
		to   *bool
	}{{"follow", a.Follow, &s.Follow}, {"partial", a.Partial, &s.Partial}} {
		if !o.text.Given {
			continue
		}
		switch o.text.Value {
		case "0", "false":
			*o.to = false
		case "1", "true":
			*o.to = true
		default:
			return fmt.Errorf("%w: %s must be 0 or 1", ErrBadPosition, o.name)
		}
	}
	if a.Wait.Given {
		d, err := time.ParseDuration(a.Wait.Value)
		if err != nil || d <= 0 || d > MaxWait {
			return fmt.Errorf("%w: wait must be a duration above 0 and at most %s, such as 20s", ErrBadPosition, MaxWait)
		}
		s.Wait, s.Follow = d, false
	}
	return nil
}

// whole reads a whole number from 0. No sign, no space, no exponent.
func whole(field, text string) (int64, error) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %s must be a whole number from 0", ErrBadPosition, field)
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s must be a whole number from 0", ErrBadPosition, field)
	}
	return n, nil
}

// eventID reads the id of an event: N, or RUN:N of the same run.
func eventID(run, text string) (int64, error) {
	if id, n, ok := strings.Cut(text, ":"); ok {
		if !strings.EqualFold(id, run) {
			return 0, fmt.Errorf("%w: Last-Event-ID is of another run", ErrBadPosition)
		}
		text = n
	}
	return whole("Last-Event-ID", text)
}

// Otherwise is s, from position n where the reader named none.
func (s Start) Otherwise(n int64) Start {
	if !s.given {
		s.n = n
	}
	return s
}
