package main

import "bytes"

// What the scripted provider's load events begin with: their number and the time they were sent at,
// in unix nanoseconds.
const (
	beforeNumber = `data: {"i":"`
	beforeTime   = `","t":"`
	numberDigits = 10
	timeDigits   = 19

	numberAt = len(beforeNumber)
	timeAt   = numberAt + numberDigits + len(beforeTime)
)

// event is one server-sent event of a load run.
type event struct {
	number int64
	sent   int64 // unix nanoseconds
	done   bool  // the end of the run instead
}

// readEvent reads one event without its blank line; ok is false for anything that the provider has
// not sent. Comments, which keep a quiet connection alive, may stand before it.
func readEvent(b []byte) (e event, ok bool) {
	for len(b) > 0 && b[0] == ':' {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	if string(b) == "data: [DONE]" {
		return event{done: true}, true
	}
	if len(b) != eventSize-len("\n\n") || string(b[:numberAt]) != beforeNumber || string(b[timeAt-len(beforeTime):timeAt]) != beforeTime {
		return event{}, false
	}
	number, ok1 := digits(b[numberAt : numberAt+numberDigits])
	sent, ok2 := digits(b[timeAt : timeAt+timeDigits])
	return event{number: number, sent: sent}, ok1 && ok2
}

func digits(b []byte) (v int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// tally is what the clients found wrong, and in how much. All but Events must be 0.
type tally struct {
	Events   int64 `json:"events"`   // checked
	Lost     int64 `json:"lost"`     // passed over
	Repeated int64 `json:"repeated"` // at or before one that had come; one that comes late was lost before
	Damaged  int64 `json:"damaged"`  // not as it was sent
	Broken   int64 `json:"broken"`   // calls that were refused, cut, or ended without their end
	Silent   int64 `json:"silent"`   // clients without any event
}

func (t *tally) add(o tally) {
	t.Events += o.Events
	t.Lost += o.Lost
	t.Repeated += o.Repeated
	t.Damaged += o.Damaged
	t.Broken += o.Broken
	t.Silent += o.Silent
}

// order checks one run: its events are numbered from 0 without a gap.
type order struct {
	next int64
	done bool
}

func (o *order) see(e event, t *tally) {
	switch {
	case e.done:
		o.done = true
		return
	case e.number < o.next:
		t.Repeated++
		return
	}
	t.Events++
	t.Lost += e.number - o.next
	o.next = e.number + 1
}

// end is called when the answer has ended as if it were whole.
func (o *order) end(events int64, t *tally) {
	t.Lost += max(0, events-o.next)
	if !o.done {
		t.Broken++
	}
}
