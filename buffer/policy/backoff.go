package policy

import "time"

// The backoff where a provider gives no hint.
const (
	backoffBase = 500 * time.Millisecond
	backoffMax  = 8 * time.Second
)

// Backoff is the wait after a failed attempt, numbered from 1, with full jitter: anything from 0 to a
// ceiling that doubles with each attempt. rnd gives a number in [0, 1). The wait of a retry is the
// greater of this and Decision.Delay, so that jitter only adds to a hint.
func Backoff(attempt int, rnd func() float64) time.Duration {
	ceiling := backoffBase
	for i := 1; i < attempt && ceiling < backoffMax; i++ {
		ceiling *= 2
	}
	return time.Duration(rnd() * float64(min(ceiling, backoffMax)))
}
