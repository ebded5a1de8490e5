package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// The whole table of position rules of docs/protocol.md, section 2, on an ended run.
func TestResume_PositionRulesOnAnEndedRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	events := fakellm.Responses("one ", "two ", "three ")
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(events, 0)...))
	id := g.Do("POST", "/openai/v1/responses", `{"model":"m","stream":true,"input":"hi"}`, "Idempotency-Key", "r1").RunID()
	g.Await(id, buffer.Completed)
	other := g.Do("POST", "/openai/v1/responses", `{"model":"m","stream":true,"input":"ho"}`).RunID()
	n := len(events)
	all := bytes.Join(events, nil)
	size := len(all)
	after := func(pos int) string { return string(bytes.Join(events[pos:], nil)) }

	for _, row := range []struct {
		name, query string
		headers     []string
		status      int
		body        string
		code        string
	}{
		{"the whole", "", nil, 200, string(all), ""},
		{"from 0", "?from=0", nil, 200, string(all), ""},
		{"from 3", "?from=3", nil, 200, after(3), ""},
		{"from the last", fmt.Sprintf("?from=%d", n-1), nil, 200, after(n - 1), ""},
		{"from the head", fmt.Sprintf("?from=%d", n), nil, 200, "", ""},
		{"beyond the head", fmt.Sprintf("?from=%d", n+1), nil, 416, "", "ahead"},
		{"far beyond", "?from=9223372036854775807", nil, 416, "", "ahead"},
		{"too large for a number", "?from=9223372036854775808", nil, 400, "", "bad_position"},
		{"negative", "?from=-1", nil, 400, "", "bad_position"},
		{"signed", "?from=%2B1", nil, 400, "", "bad_position"},
		{"a fraction", "?from=1.0", nil, 400, "", "bad_position"},
		{"not a number", "?from=abc", nil, 400, "", "bad_position"},
		{"empty", "?from=", nil, 400, "", "bad_position"},
		{"a space", "?from=%201", nil, 400, "", "bad_position"},
		{"the tail", "?from=tail", nil, 200, "", ""},
		{"an event id", "", []string{"Last-Event-ID", "2"}, 200, after(3), ""},
		{"an event id of this run", "", []string{"Last-Event-ID", id + ":2"}, 200, after(3), ""},
		{"an event id of another run", "", []string{"Last-Event-ID", other + ":2"}, 400, "", "bad_position"},
		{"the header outranks the query", "?from=0", []string{"Last-Event-ID", "4"}, 200, after(5), ""},
		{"the last event id", "", []string{"Last-Event-ID", fmt.Sprint(n - 1)}, 200, "", ""},
		{"an event id beyond", "", []string{"Last-Event-ID", fmt.Sprint(n)}, 416, "", "ahead"},
		{"an event id that is no number", "", []string{"Last-Event-ID", "x"}, 400, "", "bad_position"},
		{"after sequence 0", "?starting_after=0", nil, 200, after(1), ""},
		{"after sequence 4", "?starting_after=4", nil, 200, after(5), ""},
		{"after the last sequence", fmt.Sprintf("?starting_after=%d", n-1), nil, 200, "", ""},
		{"after a sequence that never came", fmt.Sprintf("?starting_after=%d", n), nil, 416, "", "ahead"},
		{"sequence is no number", "?starting_after=x", nil, 400, "", "bad_position"},
		{"two positions", "?from=1&from_byte=1", nil, 400, "", "bad_position"},
		{"byte 0", "?from_byte=0", nil, 200, string(all), ""},
		{"byte 1", "?from_byte=1", nil, 200, string(all[1:]), ""},
		{"byte in the middle", fmt.Sprintf("?from_byte=%d", size/2), nil, 200, string(all[size/2:]), ""},
		{"the last byte", fmt.Sprintf("?from_byte=%d", size-1), nil, 200, string(all[size-1:]), ""},
		{"all bytes", fmt.Sprintf("?from_byte=%d", size), nil, 200, "", ""},
		{"a byte beyond", fmt.Sprintf("?from_byte=%d", size+1), nil, 416, "", "ahead"},
		{"negative byte", "?from_byte=-1", nil, 400, "", "bad_position"},
		{"stored only", "?from=3&follow=0", nil, 200, after(3), ""},
		{"follow is neither", "?follow=2", nil, 400, "", "bad_position"},
		{"a broken tail too, where there is one", "?from=3&partial=1", nil, 200, after(3), ""},
		{"partial is neither", "?partial=7", nil, 400, "", "bad_position"},
		{"partial is empty", "?partial=", nil, 400, "", "bad_position"},
		{"long poll", "?from=3&wait=1s", nil, 200, after(3), ""},
		{"long poll at the head", fmt.Sprintf("?from=%d&wait=1s", n), nil, 200, "", ""},
		{"wait is no duration", "?wait=20", nil, 400, "", "bad_position"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, base := range []string{"/runs/" + id + "/resume", "/resume"} {
				query := row.query
				headers := row.headers
				if base == "/resume" {
					query = strings.Replace("&"+strings.TrimPrefix(query, "?"), "&", "?key=r1&", 1)
				}
				a := g.Do("GET", base+query, "", headers...)
				if a.Status != row.status || a.Err != nil {
					t.Fatalf("%s%s: status %d, body ended with %v, want %d", base, query, a.Status, a.Err, row.status)
				}
				if row.status == http.StatusOK && string(a.Body) != row.body {
					t.Errorf("%s: %d bytes, want %d", base, len(a.Body), len(row.body))
				}
				if row.code != "" && !strings.Contains(string(a.Body), `"code":"`+row.code+`"`) {
					t.Errorf("%s: %s, want code %s", base, a.Body, row.code)
				}
				if row.status == 416 && a.Header.Get("X-Buffer-Next") != fmt.Sprint(n) {
					t.Errorf("%s: X-Buffer-Next %q, want %d", base, a.Header.Get("X-Buffer-Next"), n)
				}
			}
		})
	}
}

// live starts a chat whose answer waits at the gate after its first texts.
func live(t *testing.T, g *rig.Rig, before, after []string) (id string, open func(), whole []byte) {
	t.Helper()
	gate := make(chan struct{})
	events := fakellm.Chat(append(before, after...)...)
	first := len(before) + 1 // and the role
	ops := fakellm.Play(events[:first], 0)
	ops = append(ops, fakellm.Gate(gate))
	ops = append(ops, fakellm.Play(events[first:], 0)...)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
	go func() {
		resp, err := g.Client.Do(g.Request("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", t.Name()))
		if err == nil {
			resp.Body.Close() // the caller leaves at once; the run goes on
		}
	}()
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := g.Do("GET", "/resume?key="+t.Name()+"&follow=0", "")
		if a.Status == 200 && a.Header.Get("X-Buffer-Next") == fmt.Sprint(first) {
			closed := false
			return a.RunID(), func() {
				if !closed {
					close(gate)
					closed = true
				}
			}, bytes.Join(events, nil)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run did not come to its gate: %d %s", a.Status, a.Body)
		}
	}
}

func TestResume_PositionRulesOnALiveRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, whole := live(t, g, []string{"a ", "b ", "c "}, []string{"d ", "e "})
	defer open()
	const head = 4
	path := "/runs/" + id + "/resume"

	if a := g.Do("GET", fmt.Sprintf("%s?from=%d", path, head+1), ""); a.Status != 416 {
		t.Errorf("beyond the head of a live run: status %d, want 416", a.Status)
	}
	if a := g.Do("GET", path+"?from=1&follow=0", ""); a.Err != nil || a.Header.Get("X-Buffer-Next") != "4" || !bytes.Contains(whole, a.Body) {
		t.Errorf("follow=0: next %s, %v", a.Header.Get("X-Buffer-Next"), a.Err)
	}
	if a := g.Do("GET", fmt.Sprintf("%s?from=%d&wait=50ms", path, head), ""); a.Status != http.StatusNoContent {
		t.Errorf("a wait at the head: status %d, want 204", a.Status)
	}
	if a := g.Do("GET", path+"?from=2&wait=5s", ""); a.Status != 200 || a.Header.Get("X-Buffer-Next") != "4" || a.Err != nil {
		t.Errorf("a wait before the head: status %d, next %s, %v", a.Status, a.Header.Get("X-Buffer-Next"), a.Err)
	}
	tailed := make(chan rig.Answer, 3)
	for _, from := range []string{"from=4", "from=tail", "from_byte=" + fmt.Sprint(len(bytes.Join(fakellm.Chat("a ", "b ", "c ")[:head], nil)))} {
		resp := g.Open("GET", path+"?"+from, "")
		go func() {
			var a rig.Answer
			buf := new(bytes.Buffer)
			_, a.Err = buf.ReadFrom(resp.Body)
			resp.Body.Close()
			a.Header, a.Body = resp.Header, buf.Bytes()
			tailed <- a
		}()
	}
	open()
	for range 3 {
		a := <-tailed
		if a.Err != nil || !bytes.HasSuffix(whole, a.Body) || len(a.Body) == 0 {
			t.Errorf("a tail from the head: %d bytes, %v", len(a.Body), a.Err)
		}
		if a.Header.Get("X-Buffer-From") != "4" {
			t.Errorf("X-Buffer-From is %q, want 4", a.Header.Get("X-Buffer-From"))
		}
	}
}
