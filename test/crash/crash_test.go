// Package crash kills the real binary, again and again, and holds what it finds after each start
// against what clients saw before: no event that anybody read is missing, no run is left without an
// end, nothing is bought twice.
package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	folders = 12
	lives   = 20 // of each folder
)

// tally is what happened, of one folder or of all.
type tally struct {
	kills, starting                      int // starting: of them, before the service was asked for anything
	clients, runs, requests, repurchases int
	events, lost, replays, faults        int
	states                               map[string]int
}

func TestKill_LosesNothing(t *testing.T) {
	path := build(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	sum := tally{states: map[string]int{}}
	t.Run("folders", func(t *testing.T) {
		for n := range folders {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				f := newFolder(t, path, fmt.Sprintf("k%d", n), rand.New(rand.NewPCG(seed, uint64(n))), syncOf(n)...)
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					sum.add(f.tally)
				}()
				for range lives {
					if f.rng.IntN(5) == 0 {
						f.killWhileStarting()
					} else {
						f.killAtWork()
					}
				}
				f.finish()
			})
		}
	})
	t.Log(sum)
}

// syncOf says how a folder's log is kept: a kill must lose nothing either way.
func syncOf(n int) []string {
	if n%3 == 2 {
		return []string{"--sync=normal"}
	}
	return nil
}

func (t *tally) add(u tally) {
	t.kills, t.starting = t.kills+u.kills, t.starting+u.starting
	t.clients, t.runs, t.requests, t.repurchases = t.clients+u.clients, t.runs+u.runs, t.requests+u.requests, t.repurchases+u.repurchases
	t.events, t.lost, t.replays, t.faults = t.events+u.events, t.lost+u.lost, t.replays+u.replays, t.faults+u.faults
	for state, n := range u.states {
		t.states[state] += n
	}
}

// String is the report.
func (t tally) String() string {
	var states []string
	for _, state := range slices.Sorted(maps.Keys(t.states)) {
		states = append(states, fmt.Sprintf("%d %s", t.states[state], strings.TrimSpace(state)))
	}
	return fmt.Sprintf("%d kills, %d of them while starting; %d clients, %d provider requests for %d runs, %d of them in place of a failed one; "+
		"%d events seen, %d lost; %d replays; runs: %s; %d faults",
		t.kills, t.starting, t.clients, t.requests, t.runs, t.repurchases, t.events, t.lost, t.replays, strings.Join(states, ", "), t.faults)
}
