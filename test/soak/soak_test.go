package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Most of its time is spent waiting for the sweeper.
func TestSoak_Briefly(t *testing.T) {
	t.Parallel()
	o := options{
		duration: 3 * time.Second, ttl: time.Second, cpu: 2, seed: rand.Uint64(), every: 200 * time.Millisecond, slack: coldSlack, dir: t.TempDir(),
	}
	if err := soak(t.Context(), o, t.Output()); err != nil {
		t.Error(err)
	}
}
