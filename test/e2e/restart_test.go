package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// dies runs a rig on the folder whose owner loses it in the middle of what it does, as by a kill: the
// log is closed under the drains, which can store nothing any more.
func dies(t *testing.T, dir string, busy func(t *testing.T, g *rig.Rig)) {
	t.Helper()
	t.Run("before", func(t *testing.T) {
		g := rig.New(t, rig.Options{Dir: dir})
		busy(t, g)
		if err := g.Store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// idle starts a chat that gets no answer, and returns when the provider has the request.
func idle(t *testing.T, g *rig.Rig, headers ...string) {
	t.Helper()
	before := g.Fake.Count("primary")
	g.Fake.Script("primary", []fakellm.Op{fakellm.Hang(0)})
	go func() {
		resp, err := g.Client.Do(g.Request("POST", "/openai/v1/chat/completions", rig.ChatBody, headers...))
		if err == nil {
			resp.Body.Close() // an answer of the rig that goes down
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := g.Fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) > before }); err != nil {
		t.Fatal(err)
	}
}

func TestRestart_InterruptedRunIsReadToItsCutAndAborted(t *testing.T) {
	dir := t.TempDir()
	var id string
	var whole []byte
	dies(t, dir, func(t *testing.T, g *rig.Rig) { id, _, whole = live(t, g, []string{"a ", "b ", "c "}, []string{"d "}) })

	g := rig.New(t, rig.Options{Dir: dir})
	run := g.Await(id, buffer.Interrupted)
	if run.Reason != buffer.OwnerLost || run.Head != 4 {
		t.Errorf("reason %s, head %d; want owner_lost at 4", run.Reason, run.Head)
	}
	if last := run.Attempts[len(run.Attempts)-1]; last.Billed != "unknown" {
		t.Errorf("the attempt that was open is billed %s, want unknown", last.Billed)
	}
	for from := range int(run.Head) + 1 {
		a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, from), "")
		rest := bytes.Join(fakellm.Chat("a ", "b ", "c ")[from:4], nil)
		if a.Status != 200 || !errors.Is(a.Err, io.ErrUnexpectedEOF) || !bytes.Equal(a.Body, rest) || a.Header.Get("X-Buffer-Status") != "interrupted" {
			t.Errorf("from %d: %d, %d bytes, %v; want %d and an abort", from, a.Status, len(a.Body), a.Err, len(rest))
		}
	}
	if a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, run.Head+1), ""); a.Status != 416 {
		t.Errorf("beyond the head: %d, want 416", a.Status)
	}
	var told []byte
	for range 2 { // the answer of a provider route is the same each time
		a := g.Chat("Idempotency-Key", run.Key)
		if a.RunID() != id || !errors.Is(a.Err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(whole, a.Body[:run.Bytes]) || !bytes.Contains(a.Body[run.Bytes:], []byte("owner_lost")) {
			t.Errorf("the key again: run %s, %v, %q", a.RunID(), a.Err, a.Body)
		}
		if told != nil && !bytes.Equal(told, a.Body) {
			t.Errorf("it differs from the time before:\n%s\n%s", told, a.Body)
		}
		told = a.Body
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
}

func TestRestart_WhatEndedIsAsItWas(t *testing.T) {
	dir := t.TempDir()
	var done, failed, acked rig.Answer
	t.Run("before", func(t *testing.T) {
		g := rig.New(t, rig.Options{Dir: dir})
		done = g.Chat("Idempotency-Key", "done")
		acked = g.Chat("Idempotency-Key", "acked")
		g.Await(acked.RunID(), buffer.Completed)
		g.Do("POST", "/runs/"+acked.RunID()+"/ack", "")
		g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(401, `{"error":{"message":"no"}}`)})
		failed = g.Chat("Idempotency-Key", "failed")
	})
	g := rig.New(t, rig.Options{Dir: dir})
	if a := g.Chat("Idempotency-Key", "done"); a.RunID() != done.RunID() || !bytes.Equal(a.Body, done.Body) || a.Err != nil {
		t.Errorf("done: run %s, %d bytes, %v", a.RunID(), len(a.Body), a.Err)
	}
	if a := g.Chat("Idempotency-Key", "failed"); a.RunID() != failed.RunID() || a.Status != 401 || !bytes.Equal(a.Body, failed.Body) {
		t.Errorf("failed: run %s, %d %s", a.RunID(), a.Status, a.Body)
	}
	if a := g.Chat("Idempotency-Key", "acked"); a.Status != 410 {
		t.Errorf("acked: %d, want 410", a.Status)
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
}

// A run whose owner died before the first content is bought anew where that can do no harm.
func TestRestart_KeyOfALostRunIsBoughtAnewWhereItMayBe(t *testing.T) {
	for _, row := range []struct {
		kind string
		anew bool
	}{{"read_only", true}, {"server_tools", false}, {"external", false}} {
		t.Run(row.kind, func(t *testing.T) {
			dir := t.TempDir()
			const id = "01JZZZZZZZ0000000000000005"
			headers := []string{"Idempotency-Key", "a", "X-Buffer-Kind", row.kind, "X-Buffer-Run-Id", id, "X-Buffer-Budget", "attempts=3"}
			dies(t, dir, func(t *testing.T, g *rig.Rig) { idle(t, g, headers...) })

			g := rig.New(t, rig.Options{Dir: dir})
			lost := g.Await(id, buffer.Failed)
			if lost.Reason != buffer.OwnerLost || len(lost.Attempts) != 1 || lost.Attempts[0].Billed != "unknown" {
				t.Errorf("reason %s, ledger %+v; want owner_lost, billed unknown", lost.Reason, lost.Attempts)
			}
			headers[5] = "" // the agent has kept its key alone
			a := g.Chat(headers...)
			if !row.anew {
				if a.RunID() != id || a.Status != 502 || a.Err != nil || !bytes.Contains(a.Body, []byte(`"upstream_failed"`)) {
					t.Errorf("run %s, %d %s, %v; want the old run's failure", a.RunID(), a.Status, a.Body, a.Err)
				}
				if h := a.Header; h.Get("X-Should-Retry") != "false" || h.Get("Retry-After") != "" {
					t.Errorf("%v; want it to say that it is not to be repeated", h)
				}
				if n := g.Fake.Count(""); n != 0 {
					t.Errorf("%d provider calls, want none", n)
				}
				return
			}
			next := g.Await(a.RunID(), buffer.Completed)
			if next.RetryOf != lost.ID || next.ID == lost.ID || a.Status != 200 || a.Err != nil {
				t.Errorf("run %s is the retry of %s, %d %v; want one of %s", next.ID, next.RetryOf, a.Status, a.Err, id)
			}
			if next.Budget.Spent != 1 || !next.Budget.Since.Equal(lost.Budget.Since) {
				t.Errorf("the old budget is not carried over: %+v after %+v", next.Budget, lost.Budget)
			}
			if again := g.Chat(headers...); again.RunID() != a.RunID() || !bytes.Equal(again.Body, a.Body) {
				t.Errorf("once more: run %s, want the new one", again.RunID())
			}
			if r := g.Do("GET", "/runs/"+a.RunID(), ""); !bytes.Contains(r.Body, []byte(`"retry_of":"`+id+`"`)) {
				t.Errorf("status: %s", r.Body)
			}
			if r := g.Do("GET", "/runs/"+id, ""); r.Status != 200 || !bytes.Contains(r.Body, []byte(`"state":"failed"`)) {
				t.Errorf("the old run: %d %s", r.Status, r.Body)
			}
			if n := g.Fake.Count(""); n != 1 {
				t.Errorf("%d provider calls, want 1", n)
			}
		})
	}
}

func TestRestart_ManyCallsWithALostKeyBuyOnce(t *testing.T) {
	dir := t.TempDir()
	dies(t, dir, func(t *testing.T, g *rig.Rig) { idle(t, g, "Idempotency-Key", "a") })
	g := rig.New(t, rig.Options{Dir: dir})
	answers := make(chan rig.Answer)
	const callers = 20
	for range callers {
		go func() { answers <- g.Chat("Idempotency-Key", "a") }()
	}
	first := <-answers
	for range callers - 1 {
		if a := <-answers; a.RunID() != first.RunID() || a.Err != nil || !bytes.Equal(a.Body, first.Body) {
			t.Errorf("runs %s and %s, %v", a.RunID(), first.RunID(), a.Err)
		}
	}
	if n := g.Fake.Count(""); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

// Readers that follow a run when its owner loses it are cut, and find the rest after the restart.
func TestRestart_TailsGoOnWhereTheyWere(t *testing.T) {
	dir := t.TempDir()
	var id string
	var seen []byte
	dies(t, dir, func(t *testing.T, g *rig.Rig) {
		id, _, _ = live(t, g, []string{"a ", "b "}, []string{"c "})
		tail := g.Open("GET", "/runs/"+id+"/resume", "")
		t.Cleanup(func() { tail.Body.Close() })
		seen = make([]byte, len(bytes.Join(fakellm.Chat("a ", "b ")[:2], nil)))
		if _, err := io.ReadFull(tail.Body, seen); err != nil {
			t.Fatal(err)
		}
	})
	g := rig.New(t, rig.Options{Dir: dir})
	a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from_byte=%d", id, len(seen)), "")
	if all := bytes.Join(fakellm.Chat("a ", "b ")[:3], nil); !bytes.Equal(append(seen, a.Body...), all) || !errors.Is(a.Err, io.ErrUnexpectedEOF) {
		t.Errorf("%q then %q, %v", seen, a.Body, a.Err)
	}
}
