// Package sdk reads streams with real, unmodified SDKs, through Spool and without it, and compares
// what they saw. The providers behind it are an emulator (npm @copilotkit/aimock), and recordings of
// real ones, which fakellm serves.
//
//	js/driver.mjs ──┐                        ┌──▶ emulator     prompts of fixtures/
//	go/main.go    ──┴──▶ (cutter) ──▶ spool ─┴──▶ fakellm      recordings
//	        └────────────────── direct ──────────────▲
//
// Every job names a model of its own: so the emulator's journal tells how often each was bought, and
// a circuit that one job's failures open closes nobody else's way.
package sdk

import "testing"

func TestSDKs(t *testing.T) {
	r := newRig(t)
	t.Run("through spool", func(t *testing.T) {
		for _, group := range []struct {
			name string
			test func(*testing.T, *rig)
		}{
			{"whole prompts", wholePrompts},
			{"broken prompts", brokenPrompts},
			{"refused prompts", refusedPrompts},
			{"recordings", wholeRecordings},
			{"cut recordings", cutRecordings},
			{"cut connections", cutConnections},
			{"reattached responses", reattachedResponses},
			{"followed runs", followedRuns},
			{"left and repeated calls", leftAndRepeatedCalls},
			{"positions", clientPositions},
		} {
			t.Run(group.name, func(t *testing.T) {
				t.Parallel()
				group.test(t, r)
			})
		}
	})
}
