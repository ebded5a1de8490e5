package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

// found is what the start after a death finds of the one run that there was.
type found struct {
	state       string // empty: no run
	least, most int    // events in the log
	ledger      int    // rows
	sent        int    // requests that had come to the provider
}

// death is where the built binary kills itself: the n-th time that a step of a run's order comes.
type death struct {
	step, when string
	n          int
	args       []string // of that life
	found
}

// The answer comes in three parts, each in one write, and each after a client has read the one before it.
var (
	killEvents = fakellm.Chat("a ", "b ", "c ", "d ")
	killParts  = []int{0, 3, 5, len(killEvents)} // where they begin, and the end
)

// deaths are all of them. What dies before COMMIT leaves nothing of a step, what dies after it all.
func deaths() (all []death) {
	whole := len(killEvents)
	swept := []string{"--ttl=1s"}
	for _, s := range []struct {
		step          string
		n             int
		args          []string
		before, after found
	}{
		{"claim", 1, nil, found{}, found{"failed", 0, 0, 1, 0}},                      // with the first row
		{"ledger", 1, nil, found{"failed", 0, 0, 1, 1}, found{"failed", 0, 0, 1, 1}}, // the end of an attempt that was refused
		{"ledger", 2, nil, found{"failed", 0, 0, 1, 1}, found{"failed", 0, 0, 2, 1}}, // the row of the next
		{"append", 1, nil, found{"failed", 0, 0, 1, 1}, found{"interrupted", 3, 3, 1, 1}},
		{"append", 2, nil, found{"interrupted", 3, 3, 1, 1}, found{"interrupted", 5, 5, 1, 1}},
		{"finish", 1, nil, found{"interrupted", 5, whole, 1, 1}, found{"completed", whole, whole, 1, 1}},
		{"release", 1, nil, found{"completed", whole, whole, 1, 1}, found{"released", whole, whole, 1, 1}},
		{"drop", 1, swept, found{"released", whole, whole, 1, 1}, found{"released", whole, whole, 1, 1}},
	} {
		all = append(all, death{s.step, s.step, s.n, s.args, s.before}, death{s.step, "commit", s.n, s.args, s.before},
			death{s.step, "committed", s.n, s.args, s.after})
	}
	all = append(all, death{"release", "committed", 1, swept, found{"released", whole, whole, 1, 1}})
	for n := 1; n <= 2; n++ { // the second one is after an attempt that was refused
		all = append(all, death{"send", "before", n, nil, found{"failed", 0, 0, n, n - 1}},
			death{"send", "wrote", n, nil, found{"failed", 0, 0, n, n}}, death{"send", "answered", n, nil, found{"failed", 0, 0, n, n}})
	}
	return all
}

func killed(t *testing.T, c *count) {
	path, err := binary.Build(t.Context(), t.TempDir(), binary.Spool, "-tags", "failpoints")
	must(t, err)
	var mu sync.Mutex
	t.Run("at", func(t *testing.T) {
		for _, d := range deaths() {
			t.Run(fmt.Sprintf("%s/%d/%s%s", d.step, d.n, d.when, strings.Join(d.args, "")), func(t *testing.T) {
				t.Parallel()
				v := newVictim(t, path, d)
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					c.times++
					c.lost += v.lost
					c.corrupted += v.corrupted
				}()
				v.die()
				v.rise()
			})
		}
	})
}

// victim is one service that dies and is started again, with one call and its readers.
type victim struct {
	death
	count
	t       *testing.T
	service binary.Service
	fake    *fakellm.Server
	gates   [3]chan struct{} // before each part
	opened  [3]sync.Once

	mu   sync.Mutex
	seen [][]byte // what each client got
}

func newVictim(t *testing.T, path string, d death) *victim {
	v := &victim{death: d, t: t, fake: fakellm.Start(t, fakellm.Config{})}
	for i := range v.gates {
		v.gates[i] = make(chan struct{})
	}
	if d.when != "wrote" { // an answer could be stored before that is noticed
		v.open(0)
	}
	v.service = binary.Service{
		Path: path, Dir: filepath.Join(t.TempDir(), "data"), Args: []string{"--provider", "openai=" + v.fake.URL + "/primary"}, Log: t.Output(),
	}
	part := func(i int) fakellm.Op { return fakellm.Bytes(killBytes(killParts[i], killParts[i+1])) }
	answer := append([]fakellm.Op{fakellm.Gate(v.gates[0])},
		fakellm.Stream("text/event-stream", part(0), fakellm.Gate(v.gates[1]), part(1), fakellm.Gate(v.gates[2]), part(2))...)
	answers := [][]fakellm.Op{answer}
	if d.n == 2 && d.step == "send" || d.step == "ledger" {
		answers = slices.Insert(answers, 0, []fakellm.Op{fakellm.JSON(503, `{"error":{"message":"down","type":"server_error","code":null}}`)})
	}
	v.fake.Script("primary", answers...)
	return v
}

func killBytes(from, to int) []byte { return bytes.Join(killEvents[from:to], nil) }

// open opens the gates up to the one behind what a client has read by now.
func (v *victim) open(read int) {
	for i := range v.gates {
		if read >= len(killBytes(0, killParts[i])) {
			v.opened[i].Do(func() { close(v.gates[i]) })
		}
	}
}

// die has a life make the call and be read, until it kills itself.
func (v *victim) die() {
	service := v.service
	service.Env = []string{fmt.Sprintf("SPOOL_FAILPOINT=%s:%s:%d", v.step, v.when, v.n)}
	p, err := service.Serve(v.args...)
	must(v.t, err)
	v.t.Cleanup(p.Kill)
	var clients sync.WaitGroup
	clients.Go(func() {
		id, clean := v.read(p.URL, http.MethodPost, "/openai/v1/chat/completions", &clients)
		if clean && v.args == nil {
			if resp, err := v.ask(p.URL, http.MethodPost, "/runs/"+id+"/ack"); err == nil {
				resp.Body.Close()
			}
		}
	})
	code, err := p.Code()
	if err != nil || code != -1 || len(p.Strays) > 0 {
		v.t.Fatalf("it ended with %d, %v, and printed %q; want it killed", code, err, p.Strays)
	}
	clients.Wait()
	v.open(len(killBytes(0, len(killEvents)))) // whoever asks again gets all of it
}

// read reads an answer until it ends, and has another client read it too, from its beginning.
func (v *victim) read(url, method, path string, others *sync.WaitGroup) (id string, clean bool) {
	resp, err := v.ask(url, method, path)
	if err != nil {
		return "", false // it died before it answered
	}
	defer resp.Body.Close()
	id = resp.Header.Get(wire.HeaderRunID)
	if method == http.MethodPost {
		others.Go(func() { v.read(url, http.MethodGet, "/runs/"+id+"/resume", others) })
	}
	var got []byte
	buf := make([]byte, 4096)
	for err == nil {
		var n int
		n, err = resp.Body.Read(buf)
		got = append(got, buf[:n]...)
		v.open(len(got))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, got)
	return id, err == io.EOF
}

func (v *victim) ask(url, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(v.t.Context(), method, url+path, strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		return nil, err
	}
	if method == http.MethodGet {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Close = true // no connection outlives its request
	req.Header = http.Header{"Authorization": {"Bearer k"}, "Content-Type": {"application/json"}, wire.HeaderHeartbeat: {"off"}}
	if method == http.MethodPost && !strings.HasPrefix(path, "/runs/") {
		req.Header.Set(wire.HeaderKey, "k")
	}
	return http.DefaultTransport.RoundTrip(req)
}

// get returns an answer that has to come.
func (v *victim) get(url, method, path string) (status int, body []byte, err error) {
	v.t.Helper()
	resp, err := v.ask(url, method, path)
	must(v.t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// rise starts the service again, holds what it finds against what clients saw, and makes the call again.
func (v *victim) rise() {
	must(v.t, v.fake.Await(v.t.Context(), func(r []fakellm.Request) bool { return len(r) >= v.sent }))
	must(v.t, v.service.Check(v.t.Context()))
	p, err := v.service.Serve()
	must(v.t, err)
	v.t.Cleanup(p.Kill)
	v.verify(p.URL, v.runs(p.URL))
	v.repeat(p.URL)
	for _, r := range v.runs(p.URL) {
		if r.Ended == nil {
			v.t.Errorf("run %s is stuck: %s", r.ID, r.State)
		}
	}
	must(v.t, p.Term())
	if code, err := p.Code(); err != nil || code != 0 {
		v.t.Errorf("it stopped with %d, %v", code, err)
	}
	must(v.t, v.service.Check(v.t.Context()))
}

func (v *victim) runs(url string) []wire.Run {
	v.t.Helper()
	_, body, err := v.get(url, http.MethodGet, "/runs")
	must(v.t, err)
	var page wire.RunList
	must(v.t, json.Unmarshal(body, &page))
	return page.Runs
}

// verify checks the run and that all is there that was seen of it.
func (v *victim) verify(url string, runs []wire.Run) {
	v.t.Helper()
	if sent := v.fake.Count(""); sent != v.sent {
		v.t.Errorf("%d requests came to the provider, want %d", sent, v.sent)
	}
	if v.state == "" {
		if len(runs) != 0 {
			v.t.Errorf("a claim that was not committed: %+v", runs)
		}
		return
	}
	if len(runs) != 1 {
		v.t.Fatalf("%d runs, want one", len(runs))
	}
	r := runs[0]
	if r.State != v.state || int(r.Head) < v.least || int(r.Head) > v.most || len(r.Attempts) != v.ledger {
		v.corrupted++
		v.t.Errorf("the run is %s at %d with %d ledger rows, want %+v", r.State, r.Head, len(r.Attempts), v.found)
	}
	if lost := r.State == "failed" || r.State == "interrupted"; lost && r.Reason != "owner_lost" {
		v.t.Errorf("the reason is %q", r.Reason)
	}
	for _, a := range r.Attempts {
		if open := a.Class == ""; open && r.Reason == "owner_lost" && a.Billed != "unknown" {
			v.t.Errorf("attempt %d, whose end nobody knows, is billed %q", a.N, a.Billed)
		}
	}
	stored := killBytes(0, int(r.Head))
	if r.State != "released" {
		if _, body, _ := v.get(url, http.MethodGet, "/runs/"+r.ID+"/resume?follow=0"); !bytes.Equal(body, stored) {
			v.corrupted++
			v.t.Errorf("%q is stored, want %q", body, stored)
		}
	}
	for _, seen := range v.seen {
		if !bytes.HasPrefix(stored, seen) {
			v.lost++
			v.t.Errorf("a client saw %q, and %q is stored", seen, stored)
		}
	}
}

// repeat makes the call again: what had no content is bought again, and nothing else is.
func (v *victim) repeat(url string) {
	v.t.Helper()
	status, body, err := v.get(url, http.MethodPost, "/openai/v1/chat/completions")
	whole := bytes.Equal(body, killBytes(0, len(killEvents)))
	bought, want := v.fake.Count("")-v.sent, 0
	ok := false
	switch v.state {
	case "", "failed":
		want = 1
		ok = status == http.StatusOK && whole && err == nil
	case "completed":
		ok = status == http.StatusOK && whole && err == nil
	case "interrupted":
		ok = status == http.StatusOK && bytes.HasPrefix(body, killBytes(0, v.least)) && err != nil
	case "released":
		ok = status == http.StatusGone
	}
	if !ok || bought != want {
		v.t.Errorf("the call again: status %d, %d bytes, %v; %d requests to the provider, want %d", status, len(body), err, bought, want)
	}
}
