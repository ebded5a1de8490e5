package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// How little patience one caller has closes no route for the others.
func TestAttack_ShortBudgetsDoNotOpenACircuit(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for i := range 8 {
		g.Chat("Idempotency-Key", fmt.Sprint(i), "X-Buffer-Budget", "attempts=1;elapsed=1us")
	}
	if a := g.Chat("Authorization", "Bearer another"); a.Status != 200 {
		t.Errorf("another caller of a healthy route: %d %s", a.Status, a.Body)
	}
}

func TestAttack_CostLimitCarriesOverToTheNextRun(t *testing.T) {
	g := rig.New(t, rig.Options{Routes: route(func(r *provider.Route) { r.Price = provider.Price{Output: 10} })})
	g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(500, `{"error":{"message":"x","type":"server_error"}}`)})
	const body = `{"model":"m","stream":true,"max_tokens":1000}` // a cent for each send
	for range 4 {
		g.Do("POST", "/openai/v1/chat/completions", body, "Idempotency-Key", "k", "X-Buffer-Budget", "attempts=10;cost=0.015")
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("%d sends that may have cost a cent each, the limit is one and a half", n)
	}
}

func TestAttack_TimeThatTheCallerSetIsOverForRepeatsToo(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Fake.Script("primary", []fakellm.Op{fakellm.Hang(0)})
	first := g.Chat("Idempotency-Key", "k", "X-Buffer-Budget", "attempts=30;elapsed=50ms")
	if again := g.Chat("Idempotency-Key", "k", "X-Buffer-Budget", "attempts=30;elapsed=50ms"); again.RunID() != first.RunID() {
		t.Error("a repeat after the budget's time began another run")
	}
}

func TestAttack_StatusesThatAreNoneAreBadGateways(t *testing.T) {
	for _, head := range []string{"HTTP/1.1 099 No\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 101 Switching Protocols\r\nConnection: close\r\n\r\n"} {
		g := rig.New(t, rig.Options{})
		g.Fake.Script("primary", []fakellm.Op{fakellm.Data(head), fakellm.Fin()})
		for range 2 {
			if a := g.Chat("Idempotency-Key", "k", "X-Buffer-Budget", "attempts=1"); a.Status != 502 || a.Err != nil {
				t.Errorf("%.20q: status %d, %v", head, a.Status, a.Err)
			}
		}
	}
}

func TestAttack_RetriesThatComeTogetherDoNotShareARun(t *testing.T) {
	for range 8 {
		g := rig.New(t, rig.Options{})
		_, open := abandoned(t, g)
		ids := make([]string, 3)
		var retries sync.WaitGroup
		for i := range ids {
			retries.Go(func() {
				resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Stainless-Retry-Count", fmt.Sprint(i+1))
				ids[i] = resp.Header.Get("X-Buffer-Run-Id")
				t.Cleanup(func() { resp.Body.Close() })
			})
		}
		retries.Wait()
		open()
		if ids[0] == ids[1] || ids[1] == ids[2] || ids[0] == ids[2] {
			t.Fatalf("two retries at once have one run: %v", ids)
		}
	}
}

func TestAttack_AStrangerCannotKeepARunAlive(t *testing.T) {
	g := rig.New(t, rig.Options{})
	gate := make(chan struct{})
	defer close(gate)
	ops := append(fakellm.Play(fakellm.Chat("a ")[:2], 0), fakellm.Gate(gate))
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, ops...))
	const id = "01JZZZZZZZ0000000000000077"
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-Run-Id", id, "X-Buffer-On-Disconnect", "cancel-after=200ms")
	resp.Body.Close()
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(string(g.Do("GET", "/runs/"+id, "").Body), `"state":"cancelled"`) {
		if a := g.Chat("X-Buffer-Run-Id", id, "Authorization", "Bearer stranger"); a.Status != 409 {
			t.Fatalf("a stranger: status %d", a.Status)
		}
		if time.Now().After(deadline) {
			t.Fatal("a stranger's refused calls keep the run alive")
		}
	}
}

func TestAttack_MalformedQueryIsNotTheDefault(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat().RunID()
	g.Await(id, buffer.Completed)
	for _, query := range []string{"from=1%zz", "from=%", "from=0;follow=0"} {
		if a := g.Do("GET", "/runs/"+id+"/resume?"+query, ""); a.Status != 400 || !bytes.Contains(a.Body, []byte("bad_position")) {
			t.Errorf("%s: %d %.80s", query, a.Status, a.Body)
		}
	}
}

func TestAttack_CallerWhoLeftHoldsNoMemoryAfterTheEnd(t *testing.T) {
	g := rig.New(t, rig.Options{})
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-On-Disconnect", "cancel-after=9999h")
	id := resp.Header.Get("X-Buffer-Run-Id")
	resp.Body.Close()
	run := g.Await(id, buffer.Completed)
	waitFor(t, func() bool { return g.Runs.Live() == 0 })
	if n := g.Runs.Readers(run.ID); n != 0 {
		t.Errorf("%d readers of a run that nobody reads", n)
	}
}

func TestAttack_LongModelNamesAreRefused(t *testing.T) {
	g := rig.New(t, rig.Options{})
	a := g.Do("POST", "/openai/v1/chat/completions", fmt.Sprintf(`{"stream":true,"model":%q}`, strings.Repeat("m", 1<<20)))
	if a.Status != 400 || g.Fake.Count("primary") != 0 {
		t.Errorf("status %d, %d provider calls", a.Status, g.Fake.Count("primary"))
	}
}
