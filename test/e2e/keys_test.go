// Package e2e tests the contract of docs/protocol.md from outside, over HTTP.
package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

func TestKey_SameCallAgainReplaysWithoutAPurchase(t *testing.T) {
	g := rig.New(t, rig.Options{})
	first := g.Chat("Idempotency-Key", "a")
	for _, key := range []string{"a", `"a"`} {
		again := g.Chat("Idempotency-Key", key)
		if again.Status != 200 || again.RunID() != first.RunID() || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("key %s: status %d, run %s, want the first run's answer", key, again.Status, again.RunID())
		}
		if again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("key %s: not marked as replayed", key)
		}
	}
	if first.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the first call is marked as replayed")
	}
	from := g.Chat("Idempotency-Key", "a", "X-Buffer-From", "3")
	if !bytes.HasSuffix(first.Body, from.Body) || len(from.Body) == 0 || len(from.Body) >= len(first.Body) {
		t.Errorf("X-Buffer-From: 3 gave %d bytes of %d", len(from.Body), len(first.Body))
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestKey_SimultaneousCallsMakeOneProviderCall(t *testing.T) {
	g := rig.New(t, rig.Options{})
	var calls sync.WaitGroup
	answers := make([]rig.Answer, 50)
	for i := range answers {
		calls.Go(func() { answers[i] = g.Chat("Idempotency-Key", "one") })
	}
	calls.Wait()
	for i, a := range answers {
		if a.Status != 200 || a.RunID() != answers[0].RunID() || !bytes.Equal(a.Body, answers[0].Body) || a.Err != nil {
			t.Errorf("call %d: status %d, run %s, %d bytes, %v", i, a.Status, a.RunID(), len(a.Body), a.Err)
		}
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestKey_OtherRequestIsRefused(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Chat("Idempotency-Key", "a")
	for _, row := range []struct{ name, path, body string }{
		{"other body", "/openai/v1/chat/completions", `{"model":"m","stream":true}`},
		{"other path", "/openai/v2/chat/completions", rig.ChatBody},
		{"other provider", "/anthropic/v1/chat/completions", rig.ChatBody},
	} {
		a := g.Do("POST", row.path, row.body, "Idempotency-Key", "a")
		if a.Status != 422 || !bytes.Contains(a.Body, []byte(`"key_reused"`)) {
			t.Errorf("%s: %d %s, want 422 key_reused", row.name, a.Status, a.Body)
		}
	}
	if a := g.Chat("Idempotency-Key", "a", "Authorization", "Bearer another"); a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another caller with the same key: %d, replayed %q; want a run of its own", a.Status, a.Header.Get("Idempotent-Replayed"))
	}
}

func TestKey_IsChecked(t *testing.T) {
	g := rig.New(t, rig.Options{})
	long := string(bytes.Repeat([]byte("k"), 256))
	for _, key := range []string{`""`, "a\tb", "\x7f", long} {
		req := g.Request("POST", "/openai/v1/chat/completions", rig.ChatBody)
		req.Header["Idempotency-Key"] = []string{key}
		resp, err := g.Client.Do(req)
		if err != nil {
			continue // net/http did not let it out
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("key %q: status %d, want 400", key, resp.StatusCode)
		}
	}
	if a := g.Chat("Idempotency-Key", long[:255]); a.Status != 200 {
		t.Errorf("a key of 255 characters: status %d", a.Status)
	}
}

// A key is one name, bare or as a quoted string, in a header and in a query.
func TestKey_IsTheSameQuotedAndBare(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat("Idempotency-Key", `"turn 1"`).RunID()
	g.Await(id, buffer.Completed)
	for _, row := range []struct{ path, header string }{
		{"/resume?key=turn%201", ""}, {"/resume?key=%22turn%201%22", ""}, {"/resume", "turn 1"}, {"/resume", `"turn 1"`},
		{"/runs?key=turn+1", ""}, {"/runs?key=%22turn+1%22", ""},
	} {
		a := g.Do("GET", row.path, "", "Idempotency-Key", row.header)
		if a.Status != 200 || a.RunID() != id && !bytes.Contains(a.Body, []byte(`"id":"`+id)) {
			t.Errorf("%s %s: %d %s", row.path, row.header, a.Status, a.Body)
		}
	}
	for _, path := range []string{"/resume?key=", "/runs?key=", "/resume?key=%22%22", "/runs?key=%01"} {
		if a := g.Do("GET", path, ""); a.Status != 400 || !bytes.Contains(a.Body, []byte(`"bad_key"`)) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestRunID_ChosenByTheCallerIsItsKey(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const id = "01JZZZZZZZ0000000000000001"
	first := g.Chat("X-Buffer-Run-Id", id)
	if first.RunID() != id {
		t.Fatalf("run %s, want %s", first.RunID(), id)
	}
	again := g.Chat("X-Buffer-Run-Id", id)
	if again.RunID() != id || !bytes.Equal(again.Body, first.Body) || g.Fake.Count("primary") != 1 {
		t.Errorf("again: run %s, %d provider calls", again.RunID(), g.Fake.Count("primary"))
	}
	if a := g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`, "X-Buffer-Run-Id", id); a.Status != 422 {
		t.Errorf("the id with another body: status %d, want 422", a.Status)
	}
	foreign := g.Chat("X-Buffer-Run-Id", id, "Authorization", "Bearer another")
	if foreign.Status != 409 || foreign.Header.Get("X-Should-Retry") != "false" || !bytes.Contains(foreign.Body, []byte(`"id_taken"`)) {
		t.Errorf("another's id: %d %s", foreign.Status, foreign.Body)
	}
	if a := g.Chat("X-Buffer-Run-Id", "nonsense"); a.Status != 400 {
		t.Errorf("an id that is no ULID: status %d, want 400", a.Status)
	}
}

func TestKey_ReleasedRunIsNotBoughtAgain(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat("Idempotency-Key", "a").RunID()
	g.Await(id, buffer.Completed)
	for range 2 {
		if a := g.Do("POST", "/runs/"+id+"/ack", ""); a.Status != 200 || !bytes.Contains(a.Body, []byte(`"state":"released"`)) {
			t.Errorf("ack: %d %s", a.Status, a.Body)
		}
	}
	if a := g.Chat("Idempotency-Key", "a"); a.Status != 410 || !bytes.Contains(a.Body, []byte(`"released"`)) {
		t.Errorf("the key again: %d %s, want 410 released", a.Status, a.Body)
	}
	for _, path := range []string{"/runs/" + id + "/resume?from=0", "/resume?key=a", "/resume?run=" + id} {
		if a := g.Do("GET", path, ""); a.Status != 410 {
			t.Errorf("%s: status %d, want 410", path, a.Status)
		}
	}
	if a := g.Do("GET", "/runs/"+id, ""); a.Status != 200 {
		t.Errorf("status of a released run: %d, want 200", a.Status)
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestKey_FailureWhoseBudgetIsSpentIsReplayed(t *testing.T) {
	g := rig.New(t, rig.Options{})
	refusal := []fakellm.Op{fakellm.JSON(503, `{"error":{"message":"overloaded","type":"server_error"}}`)}
	g.Fake.Script("primary", refusal, fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("ok"), 0)...))
	first := g.Chat("Idempotency-Key", "a", "X-Buffer-Budget", "attempts=1")
	if first.Status != 503 {
		t.Fatalf("status %d, want the provider's 503", first.Status)
	}
	replay := g.Chat("Idempotency-Key", "a", "X-Buffer-Budget", "attempts=1")
	if replay.Status != 503 || replay.RunID() != first.RunID() {
		t.Errorf("a spent budget: status %d, run %s; want the stored refusal", replay.Status, replay.RunID())
	}
}

func TestKey_FailureThatMayPassIsTriedAnew(t *testing.T) {
	g := rig.New(t, rig.Options{})
	refusal := fakellm.JSON(429, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)
	refusal.Headers = map[string][]string{"Retry-After": {"60"}} // longer than a caller is held for
	g.Fake.Script("primary", []fakellm.Op{refusal}, fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("ok"), 0)...))
	first := g.Chat("Idempotency-Key", "a")
	if first.Status != 429 {
		t.Fatalf("status %d, want the provider's 429", first.Status)
	}
	again := g.Chat("Idempotency-Key", "a")
	if again.Status != 200 || again.RunID() == first.RunID() {
		t.Errorf("the key again: status %d, run %s; want a new run", again.Status, again.RunID())
	}
	if a := g.Do("GET", "/runs/"+again.RunID(), ""); !bytes.Contains(a.Body, []byte(`"retry_of":"`+first.RunID()+`"`)) {
		t.Errorf("the new run does not name the failed one: %s", a.Body)
	}
	if n := g.Fake.Count("primary"); n != 2 {
		t.Errorf("%d provider calls, want 2", n)
	}
}

func TestCancel_BeforeContentIsAFailure(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := cancelIdle(t, g)
	if a := g.Do("GET", "/runs/"+id, ""); !bytes.Contains(a.Body, []byte(`"state":"failed"`)) {
		t.Errorf("a run that was cancelled before content: %s", a.Body)
	}
}

// cancelIdle starts a run that gets no answer and cancels it.
func cancelIdle(t *testing.T, g *rig.Rig) string {
	t.Helper()
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	g.Fake.Script("primary", []fakellm.Op{fakellm.Gate(gate), fakellm.JSON(200, `{}`)})
	const id = "01JZZZZZZZ0000000000000002"
	answered := make(chan rig.Answer, 1)
	go func() { answered <- g.Chat("X-Buffer-Run-Id", id) }()
	if err := g.Fake.Await(t.Context(), func(r []fakellm.Request) bool { return len(r) > 0 }); err != nil {
		t.Fatal(err)
	}
	if a := g.Do("POST", fmt.Sprintf("/runs/%s/cancel", id), ""); a.Status != 200 {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	}
	if a := <-answered; a.Status != 502 || a.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("the caller of a run that was cancelled before content: status %d, X-Should-Retry %q; want 502 that no SDK repeats", a.Status, a.Header.Get("X-Should-Retry"))
	}
	return id
}
