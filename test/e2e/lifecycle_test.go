package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

func TestDrain_GoesOnWithNobodyListening(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, whole := live(t, g, []string{"a "}, []string{"b ", "c "})
	open() // the caller left before
	g.Await(id, buffer.Completed)
	if a := g.Do("GET", "/runs/"+id+"/resume", ""); !bytes.Equal(a.Body, whole) {
		t.Errorf("%d bytes are stored, want %d", len(a.Body), len(whole))
	}
}

func TestCancel_StopsTheProviderAndKeepsWhatIsStored(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, whole := live(t, g, []string{"a ", "b "}, []string{"c "})
	defer open()
	if a := g.Do("POST", "/runs/"+id+"/ack", ""); a.Status != 409 || !bytes.Contains(a.Body, []byte("still_running")) {
		t.Errorf("ack of a live run: %d %s", a.Status, a.Body)
	}
	tail := g.Open("GET", "/runs/"+id+"/resume?from=0", "")
	defer tail.Body.Close()
	for range 2 {
		a := g.Do("POST", "/runs/"+id+"/cancel", "")
		if a.Status != 200 || !bytes.Contains(a.Body, []byte(`"state":"cancelled"`)) || !bytes.Contains(a.Body, []byte(`"reason":"cancelled"`)) {
			t.Errorf("cancel: %d %s", a.Status, a.Body)
		}
	}
	b, err := io.ReadAll(tail.Body)
	if err == nil || !bytes.HasPrefix(whole, b) || len(b) == 0 {
		t.Errorf("a tail of a cancelled run: %d bytes, %v; want the stored prefix and an abort", len(b), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := g.Fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) == 1 && !r[0].Closed.IsZero() }); err != nil {
		t.Error("the provider's connection is still open:", err)
	}
}

func TestOnDisconnect_CancelEndsTheRunWithItsLastReader(t *testing.T) {
	for _, policy := range []string{"cancel", "cancel-after=50ms"} {
		t.Run(policy, func(t *testing.T) {
			g := rig.New(t, rig.Options{})
			gate := make(chan struct{})
			defer close(gate)
			ops := append(fakellm.Play(fakellm.Chat("a ")[:2], 0), fakellm.Gate(gate))
			g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, ops...))
			resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-On-Disconnect", policy)
			id := resp.Header.Get("X-Buffer-Run-Id")
			resp.Body.Close()
			if run := g.Await(id, buffer.Cancelled); run.Reason != buffer.ClientGone {
				t.Errorf("reason %s, want client_gone", run.Reason)
			}
		})
	}
}

func TestOnDisconnect_AReaderThatComesBackSavesTheRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	gate := make(chan struct{})
	events := fakellm.Chat("a ", "b ")
	ops := append(fakellm.Play(events[:2], 0), fakellm.Gate(gate))
	ops = append(ops, fakellm.Play(events[2:], 0)...)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-On-Disconnect", "cancel-after=1h")
	id := resp.Header.Get("X-Buffer-Run-Id")
	resp.Body.Close()
	again := g.Open("GET", "/runs/"+id+"/resume", "")
	close(gate)
	b, err := io.ReadAll(again.Body)
	again.Body.Close()
	if err != nil || !bytes.Equal(b, bytes.Join(events, nil)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	g.Await(id, buffer.Completed)
}

func TestTTL_ChunksGoWithoutTrafficButNeverUnderAnOpenTail(t *testing.T) {
	g := rig.New(t, rig.Options{Runs: buffer.Config{Sweep: 20 * time.Millisecond}})
	gate := make(chan struct{})
	big := strings.Repeat("x", 1<<20)
	events := fakellm.Chat(big, big, big, big, big, big, big, big)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", append(fakellm.Play(events, 0), fakellm.Gate(gate))...))
	slow := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-TTL", "1ms", "Idempotency-Key", "slow")
	defer slow.Body.Close()
	id := slow.Header.Get("X-Buffer-Run-Id")
	close(gate)
	g.Await(id, buffer.Completed)
	for range 10 { // many sweeps go by while the reader does not read
		g.Do("GET", "/runs/"+id+"/resume?from=0&wait=1ms", "")
	}
	b, err := io.ReadAll(slow.Body)
	if err != nil || !bytes.Equal(b, bytes.Join(events, nil)) {
		t.Errorf("a slow reader got %d bytes, %v", len(b), err)
	}
	g.Await(id, buffer.Released)
	if a := g.Do("GET", "/runs/"+id+"/resume", ""); a.Status != 410 {
		t.Errorf("after the sweep: status %d, want 410", a.Status)
	}
	if a := g.Chat("Idempotency-Key", "slow"); a.Status != 410 {
		t.Errorf("the key after the sweep: status %d, want 410", a.Status)
	}
}

func TestAck_UnderAnOpenTailLetsItFinish(t *testing.T) {
	g := rig.New(t, rig.Options{Runs: buffer.Config{Sweep: 20 * time.Millisecond}})
	big := strings.Repeat("x", 1<<20)
	events := fakellm.Chat(big, big, big, big, big, big, big, big)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(events, 0)...))
	slow := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	defer slow.Body.Close()
	id := slow.Header.Get("X-Buffer-Run-Id")
	g.Await(id, buffer.Completed)
	if a := g.Do("POST", "/runs/"+id+"/ack", ""); a.Status != 200 {
		t.Fatalf("ack: %d %s", a.Status, a.Body)
	}
	if a := g.Do("GET", "/runs/"+id+"/resume", ""); a.Status != 410 {
		t.Errorf("a new reader: status %d, want 410", a.Status)
	}
	b, err := io.ReadAll(slow.Body)
	if err != nil || !bytes.Equal(b, bytes.Join(events, nil)) {
		t.Errorf("the reader under way got %d of %d bytes, %v", len(b), len(bytes.Join(events, nil)), err)
	}
}

func TestHold_DecidesTheStatusOfASlowStream(t *testing.T) {
	g := rig.New(t, rig.Options{Limits: api.Limits{Hold: 50 * time.Millisecond, Heartbeat: 20 * time.Millisecond}})
	gate := make(chan struct{})
	events := fakellm.Chat("a ")
	ops := append([]fakellm.Op{fakellm.Gate(gate)}, fakellm.Stream("text/event-stream", fakellm.Play(events, 0)...)...)
	g.Fake.Script("primary", ops)
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Buffer-Status") != "idle" {
		t.Errorf("held: %d %v", resp.StatusCode, resp.Header)
	}
	beat := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, beat); err != nil || string(beat) != ": hb\n" {
		t.Errorf("heartbeat %q, %v", beat, err)
	}
	close(gate)
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.HasSuffix(b, bytes.Join(events, nil)) {
		t.Errorf("after the hold: %q, %v", b, err)
	}
	if a := g.Do("GET", "/runs/"+resp.Header.Get("X-Buffer-Run-Id")+"/resume", ""); !bytes.Equal(a.Body, bytes.Join(events, nil)) {
		t.Error("a heartbeat was stored")
	}
}

func TestHold_LateFailureIsToldInBand(t *testing.T) {
	g := rig.New(t, rig.Options{Limits: api.Limits{Hold: 30 * time.Millisecond}})
	gate := make(chan struct{})
	g.Fake.Script("primary", []fakellm.Op{fakellm.Gate(gate), fakellm.JSON(400, `{"error":{"message":"no","type":"invalid_request_error"}}`)})
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", "late")
	defer resp.Body.Close()
	close(gate)
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || err == nil || !bytes.Contains(b, []byte("spool_interrupted")) {
		t.Errorf("%d %q %v, want 200, an error event and an abort", resp.StatusCode, b, err)
	}
	if a := g.Chat("Idempotency-Key", "late"); a.Status != 400 {
		t.Errorf("a replay: status %d, want the real 400", a.Status)
	}
}

func TestHeld_NothingIsShownBeforeTheFirstContent(t *testing.T) {
	g := rig.New(t, rig.Options{})
	gate := make(chan struct{})
	events := fakellm.Messages("a ")
	ops := append(fakellm.Play(events[:2], 0), fakellm.Gate(gate))
	ops = append(ops, fakellm.Play(events[2:], 0)...)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
	const id = "01JZZZZZZZ0000000000000003"
	answered := make(chan rig.Answer, 1)
	go func() {
		answered <- g.Do("POST", "/anthropic/v1/messages", `{"model":"m","stream":true}`, "X-Buffer-Run-Id", id)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := g.Fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) == 1 && r[0].Written > 300 }); err != nil {
		t.Fatal(err)
	}
	if a := g.Do("GET", "/runs/"+id+"/resume?from=0&follow=0", ""); a.Status != 200 || len(a.Body) != 0 {
		t.Errorf("before the first content: %d %q", a.Status, a.Body)
	}
	select {
	case a := <-answered:
		t.Errorf("the caller has %d %q before the first content", a.Status, a.Body)
	default:
	}
	close(gate)
	if a := <-answered; a.Status != 200 || !bytes.Equal(a.Body, bytes.Join(events, nil)) {
		t.Errorf("%d, %d bytes", a.Status, len(a.Body))
	}
}

func TestShutdown_FinishesWhatRunsAndTakesNothingNew(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, whole := live(t, g, []string{"a "}, []string{"b "})
	tail := g.Open("GET", "/runs/"+id+"/resume", "")
	defer tail.Body.Close()
	g.Server.Drain()
	drained := make(chan struct{})
	go func() { defer close(drained); g.Runs.Drain(context.Background()) }()
	waitFor(t, func() bool { return g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`).Status == 503 })
	a := g.Do("POST", "/openai/v1/chat/completions", `{"stream":true}`)
	if a.Status != 503 || !bytes.Contains(a.Body, []byte(`"draining"`)) || a.Header.Get("Retry-After") == "" {
		t.Errorf("a new run: %d %s", a.Status, a.Body)
	}
	if a := g.Do("GET", "/readyz", ""); a.Status != 503 {
		t.Errorf("readyz: %d", a.Status)
	}
	open()
	<-drained
	if b, err := io.ReadAll(tail.Body); err != nil || !bytes.Equal(b, whole) {
		t.Errorf("the tail got %d bytes, %v", len(b), err)
	}
	if a := g.Do("GET", "/runs/"+id+"/resume", ""); a.Status != 200 {
		t.Errorf("a resume while draining: %d", a.Status)
	}
}

func TestShutdown_StoresWhatDidNotFinish(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, _ := live(t, g, []string{"a "}, []string{"b "})
	defer open()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	g.Runs.Drain(now)
	if run := g.Await(id, buffer.Interrupted); run.Reason != buffer.Shutdown {
		t.Errorf("reason %s, want shutdown", run.Reason)
	}
}

// waitFor polls what has no bell.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

func TestList_GivesTheCallersRunsNewestFirst(t *testing.T) {
	g := rig.New(t, rig.Options{})
	var ids []string
	for i := range 5 {
		ids = append(ids, g.Chat("X-Buffer-Tag", fmt.Sprintf("turn=%d,user=u", i)).RunID())
	}
	g.Chat("Authorization", "Bearer another")
	get := func(query string) string { return string(g.Do("GET", "/runs"+query, "").Body) }
	all := get("")
	last := -1
	for i := len(ids) - 1; i >= 0; i-- {
		at := strings.Index(all, `"id":"`+ids[i])
		if at < 0 || at < last {
			t.Fatalf("run %d is not where it should be in %s", i, all)
		}
		last = at
	}
	if n := strings.Count(all, `"id":`); n != 5 {
		t.Errorf("%d runs, want the caller's 5", n)
	}
	if one := get("?tag=turn%3D3"); strings.Count(one, `"id":`) != 1 || !strings.Contains(one, ids[3]) {
		t.Errorf("by tag: %s", one)
	}
	if page := get("?limit=2"); !strings.Contains(page, `"next":"`+ids[3]) || strings.Count(page, `"id":`) != 2 {
		t.Errorf("a page: %s", page)
	}
	if page := get("?limit=2&after=" + ids[3]); !strings.Contains(page, ids[2]) || !strings.Contains(page, ids[1]) {
		t.Errorf("the next page: %s", page)
	}
	for _, query := range []string{"?state=gone", "?limit=0", "?limit=x", "?tag=x", "?after=x"} {
		if a := g.Do("GET", "/runs"+query, ""); a.Status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", query, a.Status)
		}
	}
}
