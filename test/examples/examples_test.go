// Package examples runs the examples as they are shipped, each against the real binary and a scripted
// provider, and kills what they say may be killed.
package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/fakellm"
)

const (
	kills   = 20                     // of each agent
	longest = 300 * time.Millisecond // that an agent lives before it is killed
	pace    = 5 * time.Millisecond   // between two events of an answer
)

// command starts an agent on a Spool, with its state and its ledger in a folder.
type command func(base, dir string) *exec.Cmd

func TestExamples(t *testing.T) {
	spool, goAgent, tsAgent := build(t, "cmd/spool"), build(t, "examples/agent-go"), compile(t)
	for name, agent := range map[string]command{
		"go": func(base, dir string) *exec.Cmd {
			return exec.Command(goAgent, "--base", base, "--state", filepath.Join(dir, "agent.json"), "--ledger", filepath.Join(dir, "ledger.txt"))
		},
		"ts": func(base, dir string) *exec.Cmd { return exec.Command("node", tsAgent, base, dir) },
	} {
		t.Run(name+" survives kill", func(t *testing.T) { t.Parallel(); survivesKill(t, spool, agent) })
		t.Run(name+" goes on after Spool's death", func(t *testing.T) { t.Parallel(); goesOn(t, spool, agent) })
	}
	t.Run("chat survives reload", func(t *testing.T) { t.Parallel(); survivesReload(t, spool) })
}

func nothing(string) string { return "" }

// A loop of three calls is killed wherever it is, and started again until it is done: each call is bought
// once, and each tool has its effect once.
func survivesKill(t *testing.T, bin string, agent command) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fake := fakellm.Start(t, fakellm.Config{})
	_, addr := serve(t, bin, "127.0.0.1:0", t.TempDir(), fake.URL)
	for killed, turns := 0, 1; killed < kills; turns++ {
		fake.Script("", answers(books("call_1", "flight"), books("call_2", "hotel"), fakellm.Chat("All ", "is ", "booked."))...)
		dir := t.TempDir()
		for done := false; !done; {
			life := patience
			if killed < kills {
				life = time.Duration(rng.Int64N(int64(longest)))
			}
			if done = start(t, agent("http://"+addr, dir), nothing).endsWithin(t, life); !done {
				killed++
			}
			if killed > kills {
				t.Fatal("it does not end")
			}
		}
		if n := fake.Count(""); n != 3*turns {
			t.Fatalf("%d calls to the provider in %d turns", n, turns)
		}
		operation := wantBooked(t, dir)
		wantKeys(t, runsOf(t, addr, operation), operation, ":1", ":2", ":3")
	}
}

// Spool itself is killed in the middle of the second answer. The agent takes what is stored of it and
// goes on from there: one more call, under the same operation.
func goesOn(t *testing.T, bin string, command command) {
	fake := fakellm.Start(t, fakellm.Config{})
	all := answers(books("call_1", "flight"), nil, books("call_2", "hotel"), fakellm.Chat("All is booked."))
	half := fakellm.Chat("The flight is ", "booked, so ")[:3]
	all[1] = slices.Concat([]fakellm.Op{fakellm.Head("text/event-stream")}, fakellm.Play(half, 0), []fakellm.Op{fakellm.Hang(0)})
	fake.Script("", all...)
	data, dir := t.TempDir(), t.TempDir()
	spool, addr := serve(t, bin, "127.0.0.1:0", data, fake.URL)
	agent := start(t, command("http://"+addr, dir), nothing)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) == 2 }); err != nil {
		t.Fatal(err)
	}
	readUntil(t, "http://"+addr+"/resume?key="+operationOf(t, dir)+":2", "booked, so ")
	spool.kill()
	_, addr = serve(t, bin, addr, data, fake.URL)
	if !agent.endsWithin(t, patience) {
		t.Fatalf("it does not end: %s", &agent.text)
	}

	operation := wantBooked(t, dir)
	runs := runsOf(t, addr, operation)
	wantKeys(t, runs, operation, ":1", ":2", ":2:2", ":3")
	for _, r := range runs {
		state, reason := "completed", ""
		if r.Key == operation+":2" {
			state, reason = "interrupted", "owner_lost"
		}
		if r.State != state || r.Reason != reason || len(r.Attempts) != 1 {
			t.Errorf("%s: %s %s, %d attempts", r.Key, r.State, r.Reason, len(r.Attempts))
		}
	}
	requests := fake.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d calls to the provider", len(requests))
	}
	if m := messages(t, requests[2].Body); m[len(m)-1] != "assistant: The flight is booked, so " {
		t.Errorf("the other call goes on from %q", m)
	}
}

// books is an answer that wants a tool.
func books(id, what string) [][]byte {
	events := fakellm.Chat("Let ", "me ", "see ", "what ", "there ", "is. ")
	words := len(events) - 3 // before the finish
	part := func(call string) []byte {
		return fmt.Appendf(nil, `data: {"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1,"model":"fake","choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":null}]}`+"\n\n", call)
	}
	return slices.Insert(events, words,
		part(`{"index":0,"id":"`+id+`","type":"function","function":{"name":"book","arguments":""}}`),
		part(`{"index":0,"function":{"arguments":"{\"what\":"}}`),
		part(`{"index":0,"function":{"arguments":"\"`+what+`\"}"}}`))
}

func answers(all ...[][]byte) [][]fakellm.Op {
	var ops [][]fakellm.Op
	for _, events := range all {
		ops = append(ops, fakellm.Stream("text/event-stream", fakellm.Play(events, pace)...))
	}
	return ops
}

// wantBooked checks that each tool had its effect once, and returns the operation.
func wantBooked(t *testing.T, dir string) string {
	t.Helper()
	operation := operationOf(t, dir)
	want := fmt.Sprintf("%[1]s:call_1\tbook {\"what\":\"flight\"}\n%[1]s:call_2\tbook {\"what\":\"hotel\"}\n", operation)
	if got, err := os.ReadFile(filepath.Join(dir, "ledger.txt")); err != nil || string(got) != want {
		t.Errorf("the ledger holds %q, %v; want %q", got, err, want)
	}
	return operation
}

// operationOf is the operation of the agent whose state is in dir.
func operationOf(t *testing.T, dir string) string {
	t.Helper()
	var s struct{ Operation string }
	b, err := os.ReadFile(filepath.Join(dir, "agent.json"))
	if err != nil || json.Unmarshal(b, &s) != nil || s.Operation == "" {
		t.Fatalf("state %q, %v", b, err)
	}
	return s.Operation
}

// runsOf is the runs of an operation in Spool's log.
func runsOf(t *testing.T, addr, operation string) []wire.Run {
	t.Helper()
	var list wire.RunList
	body := readUntil(t, "http://"+addr+"/runs?limit=200", "\x00")
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Runs, func(r wire.Run) bool { return r.Operation != operation })
}

func wantKeys(t *testing.T, runs []wire.Run, operation string, keys ...string) {
	t.Helper()
	var got []string
	for _, r := range runs {
		got = append(got, strings.TrimPrefix(r.Key, operation))
	}
	if slices.Sort(got); !slices.Equal(got, keys) {
		t.Errorf("runs %q, want %q", got, keys)
	}
}

// messages is what a call says, a string a message.
func messages(t *testing.T, body []byte) (all []string) {
	t.Helper()
	var call struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(body, &call); err != nil || len(call.Messages) == 0 {
		t.Fatalf("call %s: %v", body, err)
	}
	for _, m := range call.Messages {
		all = append(all, m.Role+": "+m.Content)
	}
	return all
}

// readUntil reads an answer until text has come, or to its end, and leaves.
func readUntil(t *testing.T, url, text string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got bytes.Buffer
	for err == nil && !bytes.Contains(got.Bytes(), []byte(text)) {
		_, err = io.CopyN(&got, resp.Body, 1)
	}
	if resp.StatusCode != http.StatusOK || err != nil && err != io.EOF {
		t.Fatalf("%s: %s, %v: %s", url, resp.Status, err, &got)
	}
	return got.Bytes()
}
