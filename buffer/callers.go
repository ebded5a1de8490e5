package buffer

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// CallerLimits bound what one caller may use at a time. Zero fields do not limit.
type CallerLimits struct {
	Live         int // runs whose drain is under way
	Runs         int // that begin within a minute
	OutputTokens int // that providers gave within a minute
}

// BusyError says that a limit of the buffer's own is reached and when to come again.
type BusyError struct {
	What  string        // which limit
	After time.Duration // spread over the callers, so that they do not come back together
}

// Error implements error.
func (e *BusyError) Error() string { return fmt.Sprintf("busy: %s", e.What) }

// busy spreads those who are refused over up to twice the wait.
func busy(what string, wait time.Duration) *BusyError {
	return &BusyError{What: what, After: wait + rand.N(max(wait, time.Second))}
}

// callers counts what each caller uses. It forgets a caller that uses nothing.
type callers struct {
	mu     sync.Mutex
	limits CallerLimits
	by     map[string]*usage
}

// usage is one caller's, in windows of a minute.
type usage struct {
	live   int
	window time.Time // its begin
	runs   int
	tokens int64
}

func newCallers(l CallerLimits) *callers { return &callers{limits: l, by: map[string]*usage{}} }

// limit sets other limits from now on.
func (c *callers) limit(l CallerLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = l
}

// admission is one run's place among its caller's.
type admission struct {
	of     *callers
	caller string
	once   sync.Once
}

// admit counts a run that is about to begin, or refuses it with a *BusyError.
func (c *callers) admit(caller string) (*admission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	u := c.current(caller, now)
	rest := u.window.Add(time.Minute).Sub(now)
	switch l := c.limits; {
	case l.Live > 0 && u.live >= l.Live:
		return nil, busy("too many live runs of this caller", time.Second)
	case l.Runs > 0 && u.runs >= l.Runs:
		return nil, busy("too many runs of this caller within a minute", rest)
	case l.OutputTokens > 0 && u.tokens >= int64(l.OutputTokens):
		return nil, busy("too many output tokens of this caller within a minute", rest)
	}
	u.live++
	u.runs++
	return &admission{of: c, caller: caller}, nil
}

// current is the caller's usage in the present window. The lock is held.
func (c *callers) current(caller string, now time.Time) *usage {
	u := c.by[caller]
	if u == nil {
		u = &usage{window: now}
		c.by[caller] = u
	}
	if now.Sub(u.window) >= time.Minute {
		u.window, u.runs, u.tokens = now, 0, 0
	}
	return u
}

// end gives the place back when the run has ended.
func (a *admission) end(output int64) {
	a.once.Do(func() { a.leave(0, output) })
}

// cancel gives the place back of a run that did not begin.
func (a *admission) cancel() {
	a.once.Do(func() { a.leave(1, 0) })
}

func (a *admission) leave(begun int, output int64) {
	c := a.of
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.current(a.caller, time.Now())
	u.live--
	u.runs = max(u.runs-begun, 0)
	u.tokens += output
	if u.live == 0 && u.runs == 0 && u.tokens == 0 {
		delete(c.by, a.caller)
	}
	c.sweep()
}

// sweep forgets callers of past windows, a few at a time. The lock is held.
func (c *callers) sweep() {
	const some = 8
	looked := 0
	for name, u := range c.by {
		if looked++; looked > some {
			return
		}
		if u.live == 0 && time.Since(u.window) >= time.Minute {
			delete(c.by, name)
		}
	}
}
