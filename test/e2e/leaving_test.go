package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// Whichever of several readers leaves, the caller among them, the others read on.
func TestLeave_OneReaderOfSeveralEndsNoOther(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	at := s.preamble + 2
	for leaver := range 4 {
		t.Run(fmt.Sprint("reader ", leaver), func(t *testing.T) {
			gate := make(chan struct{})
			s.play(g, at, gate)
			caller := g.Open("POST", s.path, s.body)
			id := caller.Header.Get("X-Buffer-Run-Id")
			readers := []*http.Response{caller}
			for range 3 {
				readers = append(readers, g.Open("GET", "/runs/"+id+"/resume", ""))
			}
			for _, r := range readers {
				take(t, r, len(s.first(at)))
			}
			readers[leaver].Body.Close()
			waitFor(t, func() bool { return g.Runs.Readers(mustULID(t, id)) == 3 })
			close(gate)
			for i, r := range readers {
				if i != leaver {
					wantWhole(t, fmt.Sprint("reader ", i), finish(r), s.rest(at))
				}
			}
			g.Await(id, buffer.Completed)
		})
	}
}

// A caller may leave before the first byte, in the middle or before the last one: unless it has asked
// for that, its call is not stopped, and its answer is there whole.
func TestLeave_WheneverTheCallerGoesTheRunGoesOn(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "anthropic")
	for i, at := range []int{0, s.preamble, s.preamble + 2, len(s.events) - 1} {
		t.Run(fmt.Sprint("after ", at), func(t *testing.T) {
			gate := make(chan struct{})
			s.play(g, at, gate)
			id := fmt.Sprintf("01JZZZZZZZ000000000000003%d", i)
			leaving, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				resp, err := g.Client.Do(g.Request("POST", s.path, s.body, "X-Buffer-Run-Id", id).WithContext(leaving))
				if err == nil {
					<-leaving.Done()
					resp.Body.Close()
				}
			}()
			awaitWritten(t, g, i+1, len(s.first(at)))
			leave()
			<-gone
			waitFor(t, func() bool { return g.Runs.Readers(mustULID(t, id)) == 0 })
			close(gate)
			g.Await(id, buffer.Completed)
			wantWhole(t, "who asks then", g.Do("GET", "/runs/"+id+"/resume", ""), s.all())
			if r := g.Fake.Requests()[i]; !r.Closed.IsZero() {
				t.Error("the provider's connection was closed under its answer")
			}
		})
	}
}

// A run can be stopped from anywhere, by its id or by what its key tells, once or ten times; the
// provider is let go, and what has come stays.
func TestLeave_CancelComesFromAnywhere(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	elsewhere := &http.Client{Transport: &http.Transport{}} // another machine of the same caller
	defer elsewhere.CloseIdleConnections()
	s := spoken(t, "responses")
	for i, row := range []struct {
		name   string
		events int
		state  buffer.State
	}{
		{"before the answer", 0, buffer.Failed},
		{"before the content", s.preamble, buffer.Failed},
		{"in the middle", s.preamble + 2, buffer.Cancelled},
	} {
		t.Run(row.name, func(t *testing.T) {
			gate := make(chan struct{})
			defer close(gate)
			s.play(g, row.events, gate)
			called := make(chan struct{})
			key := fmt.Sprint("key", i)
			go func() { defer close(called); s.say(g, "Idempotency-Key", key, "X-Buffer-Budget", "attempts=1") }()
			awaitWritten(t, g, i+1, len(s.first(row.events)))
			id := g.Do("GET", "/resume?key="+key+"&follow=0", "").RunID() // all that a page which was reloaded has
			if row.state == buffer.Cancelled {
				awaitHead(t, g, id, row.events)
			}
			var asking sync.WaitGroup
			for range 10 {
				asking.Go(func() {
					resp, err := elsewhere.Do(g.Request("POST", "/runs/"+id+"/cancel", ""))
					if err != nil {
						t.Error(err)
						return
					}
					if a := finish(resp); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"state":"`+string(row.state)+`"`) {
						t.Errorf("cancel: %d %s", a.Status, a.Body)
					}
				})
			}
			asking.Wait()
			<-called
			awaitClosed(t, g, i)
			run := g.Await(id, row.state)
			if run.Reason != buffer.CancelAsked {
				t.Errorf("reason %s", run.Reason)
			}
			want := ""
			if row.state == buffer.Cancelled {
				want = string(s.first(row.events))
			}
			if a := g.Do("GET", "/runs/"+id+"/resume", ""); string(a.Body) != want {
				t.Errorf("%q is kept, want %q", a.Body, want)
			}
		})
	}
	s.play(g, len(s.events), nil)
	id := s.say(g).RunID()
	g.Await(id, buffer.Completed)
	if a := g.Do("POST", "/runs/"+id+"/cancel", ""); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"state":"completed"`) {
		t.Errorf("cancel of a completed run: %d %s", a.Status, a.Body)
	}
}

// Of two calls that race, the one that says so is let go with its only reader; the other is not.
func TestLeave_LoserOfARaceIsLetGo(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	at := s.preamble + 2
	gate := make(chan struct{})
	s.play(g, at, gate)
	open := func(policy string) *http.Response {
		resp := g.Open("POST", s.path, s.body, "X-Buffer-On-Disconnect", policy)
		take(t, resp, len(s.first(at)))
		return resp
	}
	loser, winner, bystander := open("cancel"), open("cancel"), open("")
	loser.Body.Close()
	bystander.Body.Close()
	if run := g.Await(loser.Header.Get("X-Buffer-Run-Id"), buffer.Cancelled); run.Reason != buffer.ClientGone {
		t.Errorf("reason %s", run.Reason)
	}
	awaitClosed(t, g, 0)
	close(gate)
	wantWhole(t, "the winner", finish(winner), s.rest(at))
	g.Await(bystander.Header.Get("X-Buffer-Run-Id"), buffer.Completed)
	for _, r := range g.Fake.Requests()[1:] {
		if !r.Closed.IsZero() {
			t.Error("a provider's connection was closed under an answer that somebody wanted")
		}
	}
}

// One client may have as many tails open as it likes and ask for something else beside them.
func TestLeave_ManyTailsOfOneClientBlockNothing(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	at := s.preamble + 1
	id, open := s.begin(t, g, at)
	var tails []*http.Response
	for range 24 {
		resp := g.Open("GET", "/runs/"+id+"/resume", "")
		take(t, resp, len(s.first(at)))
		tails = append(tails, resp)
	}
	if a := g.Do("GET", "/runs/"+id, ""); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"readers":24`) {
		t.Errorf("beside them: %d %s", a.Status, a.Body)
	}
	open()
	for _, tail := range tails {
		wantWhole(t, "a tail", finish(tail), s.rest(at))
	}
}

// awaitWritten returns once the provider has got its n-th request and has answered with so many bytes.
func awaitWritten(t *testing.T, g *rig.Rig, n, bytes int) {
	t.Helper()
	awaitProvider(t, g, "it did not answer", func(r []fakellm.Request) bool { return len(r) == n && r[n-1].Written >= int64(bytes) })
}

// awaitClosed returns once the provider's i-th request is let go.
func awaitClosed(t *testing.T, g *rig.Rig, i int) {
	t.Helper()
	awaitProvider(t, g, "its connection is still open", func(r []fakellm.Request) bool { return !r[i].Closed.IsZero() })
}

func awaitProvider(t *testing.T, g *rig.Rig, otherwise string, done func([]fakellm.Request) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.Fake.Await(ctx, done); err != nil {
		t.Fatal("the provider:", otherwise)
	}
}
