package policy

import (
	"testing"
	"time"
)

func TestBackoff_DoublesUpToACeiling(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		-1: 500 * time.Millisecond, 0: 500 * time.Millisecond, 1: 500 * time.Millisecond,
		2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second, 5: 8 * time.Second, 6: 8 * time.Second,
		1 << 40: 8 * time.Second,
	} {
		if got := Backoff(attempt, func() float64 { return 1 }); got != want {
			t.Errorf("attempt %d: at most %v, want %v", attempt, got, want)
		}
		if got := Backoff(attempt, func() float64 { return 0 }); got != 0 {
			t.Errorf("attempt %d: at least %v, want full jitter", attempt, got)
		}
	}
}
