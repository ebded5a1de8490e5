package buffer

import "time"

// LazyTimer is a timer that is moved only where it must be. Whoever waits with a limit moves it with every
// chunk, nearly always to later: so it is left to ring early, and set anew then. The zero value is ready.
type LazyTimer struct {
	timer *time.Timer
	rings time.Time // zero while it is not set
}

// At returns a channel that gives something at the time or before; nil where there is no time.
func (t *LazyTimer) At(at time.Time) <-chan time.Time {
	switch {
	case at.IsZero():
		return nil
	case t.timer == nil:
		t.timer, t.rings = time.NewTimer(time.Until(at)), at
	case t.rings.IsZero() || at.Before(t.rings):
		t.timer.Reset(time.Until(at))
		t.rings = at
	}
	return t.timer.C
}

// Over reports, once the channel has given something, whether the time has come.
func (t *LazyTimer) Over(at time.Time) bool {
	t.rings = time.Time{}
	return !time.Now().Before(at)
}

// Stop ends it: nothing rings any more.
func (t *LazyTimer) Stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
