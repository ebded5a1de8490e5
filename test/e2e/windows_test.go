package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

// An answer can be read until the time that its run states, whatever its age, and then no more; what
// is gone is said to be gone, and is not bought again.
func TestWindow_IsTheOneThatTheRunStates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		headers []string
		window  time.Duration
	}{
		{"as configured", nil, 2 * time.Hour},
		{"as the call asks", []string{"X-Buffer-TTL", "20m"}, 20 * time.Minute},
		{"no longer than may be asked", []string{"X-Buffer-TTL", "9999h"}, 3 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Limits: api.Limits{TTL: 2 * time.Hour, MaxTTL: 3 * time.Hour}})
			s := spoken(t, "responses")
			s.play(g, len(s.events), nil)
			headers := append(row.headers, "Idempotency-Key", "k")
			id := s.say(g, headers...).RunID()
			ended := g.Await(id, buffer.Completed).Ended
			expires := statedEnd(t, g, id)
			if got := expires.Sub(ended).Round(time.Second); got != row.window {
				t.Errorf("the run states a window of %s, want %s", got, row.window)
			}
			path := "/runs/" + id + "/resume"
			for _, at := range []time.Time{ended.Add(6 * time.Minute), expires.Add(-time.Millisecond)} {
				sweepAt(t, g, at)
				wantWhole(t, "the whole", g.Do("GET", path, ""), s.all())
				wantWhole(t, "the terminal", g.Do("GET", path+"?starting_after=10", ""), s.rest(11))
				wantWhole(t, "the call again", s.say(g, headers...), s.all())
			}
			sweepAt(t, g, expires.Add(time.Second))
			for _, a := range []rig.Answer{g.Do("GET", path, ""), g.Do("GET", "/resume?key=k&from=3", ""), s.say(g, headers...)} {
				if a.Status != http.StatusGone {
					t.Errorf("after the window: status %d, want 410", a.Status)
				}
			}
			if n := g.Fake.Count("primary"); n != 1 {
				t.Errorf("bought %d times", n)
			}
		})
	}
}

// A live run has no window: it is kept as long as it lives, however short its time after the end.
func TestWindow_BeginsWithTheEnd(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	id, open := s.begin(t, g, 3, "X-Buffer-TTL", "1s")
	sweepAt(t, g, time.Now().Add(100*time.Hour))
	waiting := g.Open("GET", "/runs/"+id+"/resume", "")
	open()
	g.Await(id, buffer.Completed)
	sweepAt(t, g, time.Now().Add(-time.Second))
	wantWhole(t, "who waited", finish(waiting), s.all())
	wantWhole(t, "who comes in time", g.Do("GET", "/runs/"+id+"/resume?from=0", ""), s.all())
}

// sweepAt does what time asks for at now.
func sweepAt(t *testing.T, g *rig.Rig, now time.Time) {
	t.Helper()
	if _, err := g.Store.Sweep(t.Context(), now, func(id ulid.ULID) bool { return g.Runs.Readers(id) > 0 }); err != nil {
		t.Fatal(err)
	}
}

// statedEnd is until when the run says that it can be read.
func statedEnd(t *testing.T, g *rig.Rig, id string) time.Time {
	t.Helper()
	var run wire.Run
	if err := json.Unmarshal(g.Do("GET", "/runs/"+id, "").Body, &run); err != nil {
		t.Fatal(err)
	}
	if run.Expires == nil {
		t.Fatal("the run states no time")
	}
	return *run.Expires
}
