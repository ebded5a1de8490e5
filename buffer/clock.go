package buffer

import (
	"time"

	"github.com/spool-dev/spool/buffer/provider"
)

// alarm names a clock that has run out.
type alarm string

const (
	noAlarm           alarm = ""
	alarmConnect      alarm = "connect"
	alarmHeaders      alarm = "headers"
	alarmFirstContent alarm = "first_content"
	alarmByteIdle     alarm = "byte_idle"
	alarmContentGap   alarm = "content_gap"
	alarmGrace        alarm = "finish_grace"
	alarmTotal        alarm = "total"
)

// clocks knows which of an attempt's clocks runs out next. It is the drain goroutine's own; bytes
// and the request's writing are watched through the wire.
type clocks struct {
	set  provider.Clocks
	wire *provider.Wire

	begun   time.Time     // the attempt
	first   time.Time     // the run's first attempt
	head    time.Time     // when the answer's head came; zero before
	content time.Time     // the last content; zero before the first
	until   time.Time     // the end of the budget, which cuts what runs before the content; zero for none
	finish  time.Time     // the finish, or an error in the stream; zero where content has come after it
	resumed time.Time     // when the last commit was done
	stood   time.Duration // how long it took: nobody read meanwhile, so the provider's time stood still
}

// resume is called after a commit that began at from.
func (c *clocks) resume(from time.Time) {
	c.resumed = time.Now()
	c.stood = c.resumed.Sub(from)
	if !c.content.IsZero() {
		c.content = c.content.Add(c.stood)
	}
	if !c.finish.IsZero() {
		c.finish = c.finish.Add(c.stood)
	}
}

// lastByte is when the last byte came, or the head.
func (c *clocks) lastByte() time.Time {
	t := later(c.head, c.wire.LastByte())
	if t.Before(c.resumed) {
		t = t.Add(c.stood)
	}
	return t
}

// next is the clock that runs out first and when, within the budget.
func (c *clocks) next() (alarm, time.Time) {
	name, at := c.armed()
	if c.until.IsZero() || !c.content.IsZero() || !c.finish.IsZero() {
		return name, at
	}
	if name == noAlarm { // every clock is off
		return alarmFirstContent, c.until
	}
	if at.After(c.until) {
		at = c.until
	}
	return name, at
}

// armed is the clock that runs out first and when. One that is off is negative and never first.
func (c *clocks) armed() (alarm, time.Time) {
	name, at := noAlarm, time.Time{}
	consider := func(n alarm, from time.Time, d time.Duration) {
		if d <= 0 || from.IsZero() {
			return
		}
		if t := from.Add(d); at.IsZero() || t.Before(at) {
			name, at = n, t
		}
	}
	consider(alarmTotal, c.first, c.set.Total)
	if !c.finish.IsZero() {
		consider(alarmGrace, c.finish, c.set.FinishGrace)
		return name, at
	}
	sent, written := c.wire.Sent()
	if !written {
		step, connecting := c.wire.Connecting()
		if step.Before(c.begun) { // the transport has not begun
			step, connecting = c.begun, true
		}
		if connecting {
			consider(alarmConnect, step, c.set.Connect)
		}
		// What is left is a peer that does not take the request.
		consider(alarmHeaders, c.begun, 2*c.set.Connect+c.set.Headers)
		return name, at
	}
	if c.head.IsZero() {
		consider(alarmHeaders, sent, c.set.Headers)
	}
	if c.content.IsZero() {
		consider(alarmFirstContent, sent, c.set.FirstContent)
	} else {
		consider(alarmContentGap, c.content, c.set.ContentGap)
	}
	if !c.head.IsZero() {
		consider(alarmByteIdle, c.lastByte(), c.set.ByteIdle)
	}
	return name, at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
