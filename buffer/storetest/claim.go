package storetest

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

var claims = map[string]func(*env){
	"Create_IsReadBackAsGiven": func(v *env) {
		r := newRun()
		r.Key, r.BodyHash, r.RetryOf, r.Method, r.Provider, r.Route = "k", "hash", ulid.Make(), http.MethodPost, "openai", "main"
		r.Dialect, r.Model, r.Stream, r.Kind, r.Operation = "openai_chat", "m", true, "read_only", "op"
		r.Tags = map[string]string{"team": "a", "z": "\u00fc"}
		r.OnDisconnect = buffer.OnDisconnect{Cancel: true, After: 3 * time.Second}
		r.Budget = buffer.Budget{Attempts: 4, Elapsed: time.Minute, CostUSD: 0.25, Spent: 1, Since: time.UnixMilli(1234).UTC()}
		_, created, err := v.s.Create(v.ctx(), r)
		v.check(err)
		r.Created, r.EncryptedWith = created.Created, created.EncryptedWith // the store says
		if diff := cmp.Diff(r, created); diff != "" || r.Created.IsZero() {
			v.Fatal("created:", diff)
		}
		if diff := cmp.Diff(r, v.get(r.ID)); diff != "" {
			v.Fatal("stored:", diff)
		}
	},

	"Create_OnlyIdle": func(v *env) {
		r := newRun()
		r.State = buffer.Streaming
		if _, _, err := v.s.Create(v.ctx(), r); err == nil {
			v.Fatal("a run was created in another state")
		}
		_, err := v.s.Get(v.ctx(), r.ID)
		v.want(err, buffer.ErrNotFound)
	},

	"Create_OfOneKeyOneWins": func(v *env) {
		winner, losers := v.race(64, func(int) buffer.Run {
			r := newRun()
			r.Key = "operation"
			return r
		})
		for _, holder := range losers {
			if holder.ID != winner.ID {
				v.Fatalf("a loser was told %s, the winner is %s", holder.ID, winner.ID)
			}
		}
	},

	"Create_OfOneIDOneWins": func(v *env) {
		id := ulid.Make()
		winner, losers := v.race(64, func(i int) buffer.Run {
			r := newRun()
			r.ID, r.Operation = id, text(i)
			return r
		})
		for _, holder := range losers {
			if holder.ID != id || holder.Operation != winner.Operation {
				v.Fatal("a loser was told another run")
			}
		}
	},

	"Create_KeysAreTheCallers": func(v *env) {
		for _, caller := range []string{"a", "b"} {
			r := newRun()
			r.Caller, r.Key = caller, "same"
			v.create(r)
		}
	},

	"Create_LoserSeesThePresentState": func(v *env) {
		r := newRun()
		r.Key = "k"
		v.ended(r, 3)
		again := newRun()
		again.Key = "k"
		log, holder, err := v.s.Create(v.ctx(), again)
		v.want(err, buffer.ErrExists)
		if log != nil || holder.ID != r.ID || holder.Head != 3 {
			v.Fatalf("got log %v, run %s with head %d", log, holder.ID, holder.Head)
		}
		v.wantState(holder, buffer.Completed, "")
		_, err = v.s.Get(v.ctx(), again.ID)
		v.want(err, buffer.ErrNotFound)
	},

	"Create_RetryTakesTheKeyOverOnce": func(v *env) {
		failed := newRun()
		failed.Key = "k"
		v.create(failed)
		_, err := v.s.Seal(v.ctx(), failed.ID, buffer.Failed, buffer.Refused)
		v.check(err)
		winner, losers := v.race(32, func(int) buffer.Run {
			r := newRun()
			r.Key, r.RetryOf = "k", failed.ID
			return r
		})
		for _, holder := range losers {
			if holder.ID != winner.ID {
				v.Fatalf("a loser was told %s, the winner is %s", holder.ID, winner.ID)
			}
		}
		third := newRun()
		third.Key, third.RetryOf = "k", winner.ID
		v.create(third)
	},
}

// race creates n runs at once, and returns the winner and the runs that the others were told.
func (v *env) race(n int, make func(int) buffer.Run) (winner buffer.Run, losers []buffer.Run) {
	v.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range n {
		r := make(i)
		wg.Go(func() {
			_, got, err := v.s.Create(v.ctx(), r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
				winner = got
			case errors.Is(err, buffer.ErrExists):
				losers = append(losers, got)
			default:
				v.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || len(losers) != n-1 {
		v.Fatalf("%d of %d won", won, n)
	}
	return winner, losers
}
