package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// route is one route named openai, changed by the test.
func route(change func(*provider.Route)) func(string) map[string]provider.Route {
	return func(fake string) map[string]provider.Route {
		u, err := provider.ParseBase(fake + "/primary")
		if err != nil {
			panic(err) // the scripted provider's own address
		}
		r := provider.Route{Name: "openai", BaseURL: u}
		change(&r)
		return map[string]provider.Route{"openai": r}
	}
}

// abandoned starts a chat whose caller leaves after the first content, and returns its id and the
// gate that the rest of the answer waits at.
func abandoned(t *testing.T, g *rig.Rig) (id string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	events := fakellm.Chat("a ", "b ")
	ops := append(fakellm.Play(events[:2], 0), fakellm.Gate(gate))
	ops = append(ops, fakellm.Play(events[2:], 0)...)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	id = resp.Header.Get("X-Buffer-Run-Id")
	resp.Body.Close()
	waitFor(t, func() bool { return strings.Contains(string(g.Do("GET", "/runs/"+id, "").Body), `"readers":0`) })
	return id, sync.OnceFunc(func() { close(gate) })
}

func TestRetryDedupe_AnSDKsRetryFindsItsFirstSend(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open := abandoned(t, g)
	defer open()
	retry := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Stainless-Retry-Count", "1")
	defer retry.Body.Close()
	if got := retry.Header.Get("X-Buffer-Run-Id"); got != id || retry.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the retry got run %s, want the first one's %s", got, id)
	}
	open()
	if b, err := io.ReadAll(retry.Body); err != nil || !bytes.Equal(b, bytes.Join(fakellm.Chat("a ", "b "), nil)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestRetryDedupe_EachOrphanIsClaimedOnce(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open := abandoned(t, g)
	open()
	g.Await(id, buffer.Completed)
	var retries sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		retries.Go(func() { ids[i] = g.Chat("X-Stainless-Retry-Count", "1").RunID() })
	}
	retries.Wait()
	claimed := 0
	for _, got := range ids {
		if got == id {
			claimed++
		}
	}
	if claimed != 1 {
		t.Errorf("%d retries took the orphan, want 1", claimed)
	}
}

func TestRetryDedupe_LeavesOthersAlone(t *testing.T) {
	for _, row := range []struct {
		name    string
		body    string
		headers []string
	}{
		{"no retry", rig.ChatBody, nil},
		{"another body", `{"stream":true,"model":"m"}`, []string{"X-Stainless-Retry-Count", "1"}},
		{"another caller", rig.ChatBody, []string{"X-Stainless-Retry-Count", "1", "Authorization", "Bearer another"}},
		{"a key of its own", rig.ChatBody, []string{"X-Stainless-Retry-Count", "1", "Idempotency-Key", "k"}},
		{"another turn", rig.ChatBody, []string{"X-Codex-Turn-Metadata", `{"turn_id":"t2"}`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{})
			id, open := abandoned(t, g)
			open()
			g.Await(id, buffer.Completed)
			if a := g.Do("POST", "/openai/v1/chat/completions", row.body, row.headers...); a.RunID() == id || a.Status != 200 {
				t.Errorf("status %d, run %s: it took another's run", a.Status, a.RunID())
			}
		})
	}
}

func TestRetryDedupe_ACallerThatIsStillThereKeepsItsRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	gate := make(chan struct{})
	ops := append(fakellm.Play(fakellm.Chat("a ")[:2], 0), fakellm.Gate(gate))
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...), fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("b "), 0)...))
	first := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	defer first.Body.Close()
	defer close(gate)
	if a := g.Chat("X-Stainless-Retry-Count", "1"); a.RunID() == first.Header.Get("X-Buffer-Run-Id") {
		t.Error("a retry took the run of a caller that is still there")
	}
}

func TestRetryDedupe_OneTurnOfAnAgentIsOneRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	turn := []string{"X-Codex-Turn-Metadata", `{"turn_id":"t1","other":1}`}
	first := g.Chat(turn...)
	g.Await(first.RunID(), buffer.Completed)
	waitFor(t, func() bool {
		return strings.Contains(string(g.Do("GET", "/runs/"+first.RunID(), "").Body), `"readers":0`)
	})
	for range 4 {
		if again := g.Chat(turn...); again.RunID() != first.RunID() {
			t.Errorf("the turn's call again got run %s, want %s", again.RunID(), first.RunID())
		}
		waitFor(t, func() bool {
			return strings.Contains(string(g.Do("GET", "/runs/"+first.RunID(), "").Body), `"readers":0`)
		})
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestRetryDedupe_TwoCallsOfATurnAtOnceDoNotShareARun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	turn := []string{"X-Codex-Turn-Metadata", `{"turn_id":"t1"}`}
	gate := make(chan struct{})
	ops := append(fakellm.Play(fakellm.Chat("a ")[:2], 0), fakellm.Gate(gate))
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, ops...))
	first := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, turn...)
	id := first.Header.Get("X-Buffer-Run-Id")
	first.Body.Close()
	waitFor(t, func() bool { return strings.Contains(string(g.Do("GET", "/runs/"+id, "").Body), `"readers":0`) })
	var calls sync.WaitGroup
	ids := make([]string, 6)
	for i := range ids {
		calls.Go(func() {
			resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, turn...)
			ids[i] = resp.Header.Get("X-Buffer-Run-Id")
			t.Cleanup(func() { resp.Body.Close() })
		})
	}
	calls.Wait()
	close(gate)
	seen := map[string]bool{}
	for _, got := range ids {
		if seen[got] {
			t.Errorf("two callers at once have run %s", got)
		}
		seen[got] = true
	}
	if !seen[id] {
		t.Error("nobody found the run of the first send")
	}
}

func TestBudget_IsOneForAnSDKsRetriesAndOurs(t *testing.T) {
	g := rig.New(t, rig.Options{})
	refusal := fakellm.JSON(503, `{"error":{"message":"overloaded","type":"server_error"}}`)
	refusal.Headers = map[string][]string{"Retry-After-Ms": {"1"}}
	g.Fake.Script("primary", []fakellm.Op{refusal})
	for count := range 3 {
		headers := []string{}
		if count > 0 {
			headers = []string{"X-Stainless-Retry-Count", fmt.Sprint(count)}
		}
		if a := g.Chat(headers...); a.Status != 503 {
			t.Errorf("send %d: status %d, want 503", count, a.Status)
		}
	}
	if n := g.Fake.Count("primary"); n != 3 {
		t.Errorf("%d provider calls, want 3: one budget", n)
	}
}

func TestCallerLimits_RefuseWithAWait(t *testing.T) {
	g := rig.New(t, rig.Options{Runs: buffer.Config{Callers: buffer.CallerLimits{Live: 1}}})
	id, open := abandoned(t, g)
	defer open()
	a := g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`)
	if a.Status != 429 || !bytes.Contains(a.Body, []byte(`"busy"`)) || a.Header.Get("Retry-After") == "" {
		t.Errorf("a second live run: %d %s", a.Status, a.Body)
	}
	other := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "Authorization", "Bearer another")
	defer other.Body.Close()
	if other.StatusCode != 200 {
		t.Errorf("another caller: status %d", other.StatusCode)
	}
	open()
	g.Await(id, buffer.Completed)
	waitFor(t, func() bool { return g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`).Status == 200 })
}

// A call whose body finds no room is refused before anything is bought, with the limit's name.
func TestBodies_OverTheirLimitAreRefusedWithAWait(t *testing.T) {
	g := rig.New(t, rig.Options{Runs: buffer.Config{MaxBodies: 1}})
	a := g.Chat("Idempotency-Key", "k")
	if a.Status != 429 || !bytes.Contains(a.Body, []byte("limits.bodies")) || a.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %s", a.Status, a.Body)
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d calls were bought", n)
	}
}

func TestCallerLimits_CountRunsAndTokensOfAMinute(t *testing.T) {
	for name, limits := range map[string]buffer.CallerLimits{"runs": {Runs: 2}, "tokens": {OutputTokens: 60}} {
		t.Run(name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Runs: buffer.Config{Callers: limits}})
			refused := 0
			for i := range 4 {
				a := g.Chat("Idempotency-Key", fmt.Sprint(i))
				if a.Status == 200 {
					g.Await(a.RunID(), buffer.Completed)
					continue
				}
				refused++
				if a.Status != 429 || a.Header.Get("Retry-After") == "" {
					t.Errorf("call %d: status %d", i, a.Status)
				}
			}
			if refused == 0 {
				t.Error("no call was refused")
			}
			if a := g.Chat("Idempotency-Key", "0"); a.Status != 200 {
				t.Errorf("a replay counts as a run: status %d", a.Status)
			}
		})
	}
}

func TestConcurrency_CallsQueueForASlotThatTheDrainHolds(t *testing.T) {
	g := rig.New(t, rig.Options{
		Routes: route(func(r *provider.Route) { r.Concurrency = 1 }),
		Runs:   buffer.Config{Queue: buffer.QueueLimits{Length: 1, Wait: time.Minute}},
	})
	id, open := abandoned(t, g) // its caller has left, its drain holds the slot
	defer open()
	queued := make(chan rig.Answer, 1)
	go func() { queued <- g.Chat("X-Buffer-Run-Id", "01JZZZZZZZ0000000000000009") }()
	waitFor(t, func() bool {
		return strings.Contains(string(g.Do("GET", "/runs/01JZZZZZZZ0000000000000009", "").Body), `"phase":"waiting_for_slot"`)
	})
	a := g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`)
	if a.Status != 429 || !bytes.Contains(a.Body, []byte(`"busy"`)) || a.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the queue: %d %s", a.Status, a.Body)
	}
	if run := g.Await(a.RunID(), buffer.Failed); len(run.Attempts) != 0 {
		t.Errorf("a call that was not sent has %d ledger rows", len(run.Attempts))
	}
	open()
	g.Await(id, buffer.Completed)
	if a := <-queued; a.Status != 200 || a.Err != nil {
		t.Errorf("the queued call: %d %v", a.Status, a.Err)
	}
	if n := g.Fake.Count("primary"); n != 2 {
		t.Errorf("%d provider calls, want 2", n)
	}
}

func TestCircuit_OpensAfterFailuresAndSendsNothing(t *testing.T) {
	g := rig.New(t, rig.Options{Routes: route(func(r *provider.Route) { r.NoRetry = true })})
	g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(503, `{"error":{"message":"down","type":"server_error"}}`)})
	for i := range 5 {
		if a := g.Chat("Idempotency-Key", fmt.Sprint(i)); a.Status != 503 {
			t.Fatalf("call %d: status %d", i, a.Status)
		}
	}
	a := g.Chat("Idempotency-Key", "open")
	if a.Status != 429 || !bytes.Contains(a.Body, []byte(`"busy"`)) {
		t.Errorf("an open circuit: %d %s", a.Status, a.Body)
	}
	if n := g.Fake.Count("primary"); n != 5 {
		t.Errorf("%d provider calls, want 5", n)
	}
	if b := g.Do("POST", "/openai/v1/chat/completions", `{"model":"other","stream":true}`); b.Status != 503 {
		t.Errorf("another model of the route: status %d, want the provider's 503", b.Status)
	}
}

func TestMetrics_TellWhatTheLogTells(t *testing.T) {
	g := rig.New(t, rig.Options{})
	ok := fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("a "), 0)...)
	cut := append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(fakellm.Chat("a ", "b ")[:2], 0), fakellm.End())...)
	overloaded := fakellm.JSON(503, `{"error":{"message":"overloaded","type":"server_error"}}`)
	overloaded.Headers = map[string][]string{"Retry-After-Ms": {"1"}}
	g.Fake.Script("primary", ok, cut, []fakellm.Op{overloaded}, ok, []fakellm.Op{fakellm.JSON(400, `{"error":{"type":"invalid_request_error"}}`)})
	for i := range 4 {
		g.Chat("Idempotency-Key", fmt.Sprint(i))
	}
	g.Chat("Idempotency-Key", "0")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var text string
	for _, line := range []string{
		`spool_runs_ended_total{detail="",outcome="primary_ok",route="openai"} 1`,
		`spool_runs_ended_total{detail="eof_without_end",outcome="interrupted",route="openai"} 1`,
		`spool_runs_ended_total{detail="",outcome="retry_recovered",route="openai"} 1`,
		`spool_runs_ended_total{detail="request",outcome="failed",route="openai"} 1`,
		`spool_attempts_total{action="retry",class="transient",route="openai"} 1`,
		`spool_reuses_total{how="replay"} 1`,
		`spool_output_tokens_saved_total 1`,
	} {
		for !strings.Contains(text, line) {
			text = string(g.Do("GET", "/metrics", "").Body)
			if ctx.Err() != nil {
				t.Errorf("no %q in the metrics", line)
				break
			}
		}
	}
	if strings.Contains(text, "Idempotency") || strings.Contains(text, "Bearer") {
		t.Error("something of a request is in the metrics")
	}
}
