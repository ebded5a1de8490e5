package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

// The test's own program is its NATS servers, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "nats" {
		if err := natsServer(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// What several nodes over three servers do together, with the programs themselves.
func TestCluster(t *testing.T) {
	f, err := newFleet(t.Context(), t.TempDir(), t.ArtifactDir(), fakellm.Config{Every: 20 * time.Millisecond})
	t.Cleanup(f.close)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"every node serves every run", everyNode},
		{"a key on all nodes at once is one provider call", oneKey},
		{"all nodes are upgraded, and nobody notices", upgraded},
		{"the owner is killed", func(t *testing.T, f *fleet) {
			s := dies(t, f, 0, func() { f.node(0).kill() }, func() error { return f.node(0).start() })
			unchanged(t, s)
		}},
		{"the owner is paused and wakes", func(t *testing.T, f *fleet) {
			s := dies(t, f, 1, func() { succeed(t, f.node(1).pause()) }, f.node(1).resume)
			unchanged(t, s)
		}},
		{"the owner is cut off and comes back", cutOff},
		{"from a folder to the cluster", moved},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, f) }) {
			return // what follows would tell nothing
		}
	}
	succeed(t, f.check(t.Context()))
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer makes a request of a node, and returns its status and what came.
func (f *fleet) answer(t *testing.T, method string, node int, path, text string, headers ...string) (int, http.Header, []byte) {
	t.Helper()
	resp, err := do(t.Context(), method, f.node(node).url+path, text, headers...)
	succeed(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil && method != http.MethodGet {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// everyNode makes calls of node 0, and does all the rest elsewhere.
func everyNode(t *testing.T, f *fleet) {
	status, header, whole := f.answer(t, http.MethodPost, 0, "/words/v1/chat/completions", body, "Idempotency-Key", "first")
	run := header.Get("X-Buffer-Run-Id")
	if status != http.StatusOK || run == "" {
		t.Fatalf("status %d: %s", status, whole)
	}
	for node := range size {
		for _, path := range []string{"/runs/" + run + "/resume?from=0", "/resume?from=0&key=first"} {
			if _, _, got := f.answer(t, http.MethodGet, node, path, ""); !bytes.Equal(got, whole) {
				t.Errorf("node %d, %s: %d bytes, want %d", node, path, len(got), len(whole))
			}
		}
		if _, _, events := f.answer(t, http.MethodGet, node, "/runs/"+run+"/events?from=0", ""); !bytes.Contains(events, []byte("id: ")) {
			t.Errorf("node %d: events are %.200s", node, events)
		}
		if _, _, list := f.answer(t, http.MethodGet, node, "/runs?state=completed", ""); !bytes.Contains(list, []byte(run)) {
			t.Errorf("node %d lists %s", node, list)
		}
		if _, h, again := f.answer(t, http.MethodPost, node, "/words/v1/chat/completions", body, "Idempotency-Key", "first"); h.Get("X-Buffer-Run-Id") != run || !bytes.Equal(again, whole) {
			t.Errorf("node %d: the call again is run %s", node, h.Get("X-Buffer-Run-Id"))
		}
	}
	if status, _, b := f.answer(t, http.MethodPost, 1, "/runs/"+run+"/ack", ""); status != http.StatusOK {
		t.Errorf("ack on node 1: %d %s", status, b)
	}
	for node := range size {
		// The others are told of it, and until then a reader of what is kept anyway is served.
		status, late := 0, time.Now().Add(patience)
		for status != http.StatusGone && time.Now().Before(late) {
			status, _, _ = f.answer(t, http.MethodGet, node, "/runs/"+run+"/resume?from=0", "")
		}
		if status != http.StatusGone {
			t.Errorf("node %d after the ack: %d", node, status)
		}
	}
	cancelled(t, f)
}

// cancelled stops a run of node 0 on node 2, while its provider is silent and nobody has it on node 0.
func cancelled(t *testing.T, f *fleet) {
	resp, err := do(t.Context(), http.MethodPost, f.node(0).url+"/openai/v1/chat/completions?events=3&rate=50&hold=1", body)
	succeed(t, err)
	defer resp.Body.Close()
	s := &stream{f: f, run: resp.Header.Get("X-Buffer-Run-Id")}
	status, _, b := f.answer(t, http.MethodPost, 2, "/runs/"+s.run+"/cancel", "")
	var run wire.Run
	if err := json.Unmarshal(b, &run); err != nil || status != http.StatusOK || run.State != "cancelled" {
		t.Fatalf("cancel on node 2: %d %s", status, b)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the caller on node 0 took the answer for a whole one")
	}
	succeed(t, eventually(t.Context(), func() error { // its provider was let go
		for _, r := range f.fake.Requests() {
			if strings.Contains(r.Target, "hold=1") && r.Closed.IsZero() {
				return fmt.Errorf("the provider's call goes on: %s", r.Target)
			}
		}
		return nil
	}))
}

// oneKey makes the same call of all nodes at once, several times over.
func oneKey(t *testing.T, f *fleet) {
	before := f.fake.Count("v1")
	const keys = 5
	for k := range keys {
		var calls sync.WaitGroup
		var mu sync.Mutex
		runs, texts := map[string]int{}, map[string]int{}
		for i := range 3 * size {
			calls.Go(func() {
				resp, err := do(t.Context(), http.MethodPost, f.node(i%size).url+"/words/v1/chat/completions", body, "Idempotency-Key", fmt.Sprint("one-", k))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				mu.Lock()
				defer mu.Unlock()
				runs[resp.Header.Get("X-Buffer-Run-Id")]++
				texts[string(b)]++
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("node %d: %s: %s: %v", i%size, resp.Status, b, err)
				}
			})
		}
		calls.Wait()
		if len(runs) != 1 || len(texts) != 1 {
			t.Errorf("the key named %d runs, with %d answers", len(runs), len(texts))
		}
	}
	if n := f.fake.Count("v1") - before; n != keys {
		t.Errorf("%d provider calls for %d keys", n, keys)
	}
}

// upgraded replaces all nodes by those of another version, while answers come and new calls are made.
func upgraded(t *testing.T, f *fleet) {
	before := f.version
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &play{fleet: f, rnd: rand.New(rand.NewPCG(seed, 0)), streams: 2 * size}
	at := slices.IndexFunc(ways, func(w way) bool { return w.name == "upgrade the nodes" })
	got, _, err := p.try(t.Context(), ways[at])
	succeed(t, err)
	if want := (tally{acknowledged: 2 * size * perStream, completed: 2 * size, calls: got.calls}); got != want || got.calls == 0 || f.version == before {
		t.Errorf("%+v in version %s, want %+v in another than %s", got, f.version, want, before)
	}
}

// dies has a run of a node read elsewhere, ends the node, and checks that the reader is told, and that all
// that it has seen is there; then the node comes back.
func dies(t *testing.T, f *fleet, owner int, end func(), back func() error) *stream {
	t.Helper()
	s, err := f.begin(t.Context(), owner, 100_000, 100)
	succeed(t, err)
	reader, told := (owner+1)%size, make(chan error, 1)
	go func() {
		_, err := s.part(t.Context(), reader, &s.next) // ends when its node says so
		told <- err
	}()
	succeed(t, eventually(t.Context(), func() error {
		if n := s.next.Load(); n < 50 {
			return fmt.Errorf("the reader has seen %d events", n)
		}
		return nil
	}))
	end()
	select {
	case err := <-told:
		succeed(t, err)
	case <-time.After(patience):
		t.Fatal("the reader was told nothing")
	}
	run, err := s.status(t.Context(), reader)
	succeed(t, err)
	if run.State != "interrupted" || run.Reason != "owner_lost" || run.Head < s.next.Load() {
		t.Fatalf("run is %s %s at %d; the reader has seen %d", run.State, run.Reason, run.Head, s.next.Load())
	}
	succeed(t, back())
	succeed(t, f.ready(t.Context(), owner))
	return s
}

// unchanged checks that what was sealed has stayed as it was, on all nodes, and is whole.
func unchanged(t *testing.T, s *stream) {
	t.Helper()
	var head int64
	for node := range size {
		run, err := s.status(t.Context(), node)
		succeed(t, err)
		if head == 0 {
			head = run.Head
		}
		if run.State != "interrupted" || run.Head != head {
			t.Errorf("node %d: run is %s at %d, want %d", node, run.State, run.Head, head)
		}
	}
	got, err := s.f.count(t.Context(), 2, []*stream{s})
	succeed(t, err)
	if got.lost > 0 || got.wrong > 0 {
		t.Errorf("of %d acknowledged events %d are lost, %d wrong", got.acknowledged, got.lost, got.wrong)
	}
}

// cutOff has a node reach the servers through relays that are cut, and mended later.
func cutOff(t *testing.T, f *fleet) {
	var relays []*cutter.Cutter
	var urls []string
	targets := strings.Split(f.store, ",")
	for _, target := range targets {
		c := cutter.Start(t, strings.Replace(target, "nats://", "http://", 1), func(int) cutter.Cut { return cutter.Cut{} })
		relays = append(relays, c)
		urls = append(urls, strings.Replace(c.URL, "http://", "nats://", 1))
	}
	owner, err := f.addNode("cut", on(strings.Join(urls, ","))...)
	succeed(t, err)
	s := dies(t, f, owner, func() {
		for _, c := range relays {
			c.Aim("http://127.0.0.1:1")
			c.Drop()
		}
	}, func() error {
		if err := notReady(t.Context(), f.node(owner).url); err != nil {
			return err
		}
		for i, c := range relays {
			c.Aim(strings.Replace(targets[i], "nats://", "http://", 1))
		}
		return nil
	})
	unchanged(t, s)
}

// moved goes from one machine to the cluster as docs/operations.md says: the old process keeps its folder and what
// it has begun, the new one takes what comes.
func moved(t *testing.T, f *fleet) {
	const key = "before the move"
	call := func(node int) (run string, whole []byte) {
		status, header, whole := f.answer(t, http.MethodPost, node, "/words/v1/chat/completions", body, "Idempotency-Key", key)
		if status != http.StatusOK {
			t.Fatalf("call of node %d: %d %s", node, status, whole)
		}
		return header.Get("X-Buffer-Run-Id"), whole
	}
	folder := t.TempDir()
	old, err := f.addNode("on a folder", "--data", folder, "--grace", "0s")
	succeed(t, err)
	kept, whole := call(old)
	live, err := f.call(t.Context(), old, perStream, rate)
	succeed(t, err)

	same, err := os.ReadFile(filepath.Join(folder, "secret"))
	succeed(t, err)
	by, err := f.addNode("moved", "--store", f.store, "--secret", strings.TrimSpace(string(same)))
	succeed(t, err)
	if run, again := call(by); run == kept || !bytes.Equal(again, whole) {
		t.Errorf("the key is run %s in the cluster, and was %s in the folder; its answers are alike: %t", run, kept, bytes.Equal(again, whole))
	}
	resume := "/runs/" + kept + "/resume?from=0"
	if status, _, got := f.answer(t, http.MethodGet, by, resume, ""); status != http.StatusNotFound || !bytes.Contains(got, []byte(`"not_found"`)) {
		t.Errorf("the cluster answers for a run of the folder with %d %s", status, got)
	}
	if status, _, got := f.answer(t, http.MethodGet, old, resume, ""); status != http.StatusOK || !bytes.Equal(got, whole) {
		t.Errorf("the old process answers for its run with %d, %d bytes", status, len(got))
	}
	succeed(t, f.node(old).ask())
	if complete, err := live.stay(); err != nil || !complete || live.next.Load() != perStream {
		t.Errorf("the live answer has %d events; whole: %t; error %v", live.next.Load(), complete, err)
	}
	succeed(t, f.node(old).stopped())
}

// notReady waits until a node says that it takes nothing.
func notReady(ctx context.Context, url string) error {
	return eventually(ctx, func() error {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("a node without its servers says %s", resp.Status)
		}
		return nil
	})
}
