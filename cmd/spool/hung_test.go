package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A shutdown is given up where the log hangs, and only there.
func TestHung_AbortsWhatNeverEnds(t *testing.T) {
	for name, hangs := range map[string]bool{"hangs": true, "is slow": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun, aborted := time.Now(), false
				whenHung(ctx, func() bool { return hangs && time.Since(begun) > hungPatience }, func() { aborted = true })
				if took := time.Since(begun); aborted != hangs || hangs && took > hungPatience+2*time.Second {
					t.Errorf("aborted: %v, after %s", aborted, took)
				}
			})
		})
	}
}
