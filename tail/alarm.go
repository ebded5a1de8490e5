package tail

import "time"

// alarm is a timer that is moved only where it must be. A reader with a limit moves it with every chunk,
// nearly always to later: so it is left to ring early, and set anew then.
type alarm struct {
	timer *time.Timer
	rings time.Time // zero while it is not set
}

// at returns a channel that gives something at the time or before; nil where there is no time.
func (a *alarm) at(t time.Time) <-chan time.Time {
	switch {
	case t.IsZero():
		return nil
	case a.timer == nil:
		a.timer, a.rings = time.NewTimer(time.Until(t)), t
	case a.rings.IsZero() || t.Before(a.rings):
		a.timer.Reset(time.Until(t))
		a.rings = t
	}
	return a.timer.C
}

// over reports, once the channel has given something, whether the time has come.
func (a *alarm) over(t time.Time) bool {
	a.rings = time.Time{}
	return !time.Now().Before(t)
}
