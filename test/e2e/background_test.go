package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

const (
	responsesBody = `{"model":"m","stream":true,"input":"hi"}`
	fakeResponse  = "/openai/v1/responses/resp_fake"
)

// respond makes a streamed Responses call at the provider, and waits for its end.
func respond(t *testing.T, g *rig.Rig, path string, headers ...string) buffer.Run {
	t.Helper()
	a := g.Do("POST", path, responsesBody, headers...)
	return g.Await(a.RunID(), buffer.Completed, buffer.Interrupted, buffer.Failed)
}

// respondLive makes one whose answer waits at a gate after its first events.
func respondLive(t *testing.T, g *rig.Rig, events [][]byte, first int) (id string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	ops := append(fakellm.Play(events[:first], 0), fakellm.Gate(gate))
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", append(ops, fakellm.Play(events[first:], 0)...)...))
	resp := g.Open("POST", "/openai/v1/responses", responsesBody)
	resp.Body.Close() // the caller leaves at once; the run goes on
	id = resp.Header.Get("X-Buffer-Run-Id")
	eventually(t, func() bool {
		return g.Do("GET", "/runs/"+id+"/resume?follow=0", "").Header.Get("X-Buffer-Next") == fmt.Sprint(first)
	})
	return id, func() { close(gate) }
}

// chunksOf is everything that the log has of a run.
func chunksOf(t *testing.T, g *rig.Rig, run buffer.Run) []buffer.Chunk {
	t.Helper()
	var chunks []buffer.Chunk
	for int64(len(chunks)) < run.Head {
		page, err := g.Store.Read(t.Context(), run.ID, int64(len(chunks)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, page.Chunks...)
	}
	return chunks
}

// event is what the tests read of an event.
type event struct {
	Type     string          `json:"type"`
	Response json.RawMessage `json:"response"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
}

// eventIn is the event of a chunk; zero where it is none.
func eventIn(chunk []byte) (e event) {
	for line := range bytes.Lines(chunk) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			_ = json.Unmarshal(data, &e) // [DONE] is no event
		}
	}
	return e
}

func wantStatus(t *testing.T, a rig.Answer, status string) {
	t.Helper()
	var got struct {
		ID     string
		Status string
	}
	if err := json.Unmarshal(a.Body, &got); err != nil || a.Status != 200 || got.Status != status {
		t.Errorf("%d %s, want the response as %s", a.Status, a.Body, status)
	}
}

// Of the long recordings the sequence numbers near either end are tried, and some between.
func TestBackground_EveryRecordingAfterItsSequenceNumbers(t *testing.T) {
	recordings := fakellm.Recordings(t)
	g := rig.New(t, rig.Options{Fake: fakellm.Config{Recordings: recordings}})
	for _, r := range recordings {
		if r.Dialect != "openai_responses" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			run := respond(t, g, "/tape/"+r.Name+r.Path)
			sent := len(g.Fake.Requests())
			path := "/tape/" + r.Name + r.Path + "/" + run.ProviderID
			var terminal []byte
			for _, c := range chunksOf(t, g, run) {
				if object := eventIn(c.Data).Response; object != nil {
					terminal = object
				}
				s, ok := provider.SequenceNumber(c.Data)
				if !ok || c.Pos > 4 && c.Pos < run.Head-4 && c.Pos%(1+run.Head/8) != 0 {
					continue
				}
				a := g.Do("GET", fmt.Sprintf("%s?stream=true&starting_after=%d", path, s), "")
				if a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, r.Body[c.End:]) {
					t.Fatalf("after %d: %d, %d bytes, %v; want the recording's last %d", s, a.Status, len(a.Body), a.Err, int64(len(r.Body))-c.End)
				}
			}
			if a := g.Do("GET", path+"?stream=true", ""); a.Err != nil || !bytes.Equal(a.Body, r.Body) {
				t.Errorf("the whole: %d, %d bytes, %v", a.Status, len(a.Body), a.Err)
			}
			a := g.Do("GET", path, "")
			if a.Status != 200 || !bytes.Equal(a.Body, terminal) || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the object: %d, %s\n%s", a.Status, a.Header.Get("Content-Type"), cmp.Diff(string(terminal), string(a.Body)))
			}
			if n := len(g.Fake.Requests()); n != sent {
				t.Errorf("the provider was asked %d times more", n-sent)
			}
		})
	}
}

func TestBackground_LiveRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	events := fakellm.Responses("a ", "b ", "c ")
	const first = 6 // two words
	_, open := respondLive(t, g, events, first)

	a := g.Do("GET", fakeResponse, "")
	if want := eventIn(events[1]).Response; !bytes.Equal(a.Body, want) || a.Header.Get("X-Buffer-Status") != "streaming" {
		t.Errorf("before the end: %s, want %s", a.Body, want)
	}
	var tails []*http.Response
	for _, ask := range []struct{ query, body string }{
		{"?stream=true&starting_after=4", ""},
		{"?starting_after=4", `{"stream":true}`},
		{"", `{"stream":true,"starting_after":4}`},
		{"?stream=true&starting_after=4&include_obfuscation=false&api-version=preview", "{}"},
	} {
		tails = append(tails, g.Open("GET", fakeResponse+ask.query, ask.body))
	}
	open()
	for i, resp := range tails {
		if a := read(resp); a.Err != nil || !bytes.Equal(a.Body, bytes.Join(events[5:], nil)) {
			t.Errorf("tail %d: %q, %v", i, a.Body, a.Err)
		}
	}
	if a := g.Do("GET", fakeResponse, `{"stream":false}`); !bytes.Equal(a.Body, eventIn(events[len(events)-1]).Response) {
		t.Errorf("after the end: %s", a.Body)
	}
}

func TestBackground_Refusals(t *testing.T) {
	g := rig.New(t, rig.Options{})
	run := respond(t, g, "/openai/v1/responses")
	for _, row := range []struct {
		name, query, body string
		status            int
		code              string
	}{
		{"after what never came", "?stream=true&starting_after=10000", "", 416, "ahead"},
		{"negative", "?stream=true&starting_after=-1", "", 400, "bad_position"},
		{"empty", "?stream=true&starting_after=", "", 400, "bad_position"},
		{"no number", "?stream=true&starting_after=x", "", 400, "bad_position"},
		{"no number in the body", "", `{"stream":true,"starting_after":"x"}`, 400, "bad_position"},
		{"no number, no stream", "?starting_after=x", "", 400, "bad_position"},
		{"two positions", "?stream=true&starting_after=1&from=1", "", 400, "bad_position"},
		{"neither stream nor not", "?stream=maybe", "", 400, "bad_request"},
		{"a body without end", "", `{"stream":` + strings.Repeat(" ", 1<<20) + `true}`, 413, "too_large"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := g.Do("GET", fakeResponse+row.query, row.body)
			var got struct {
				Error struct{ Code, Type, Message string }
			}
			if err := json.Unmarshal(a.Body, &got); err != nil || a.Status != row.status || got.Error.Code != row.code || got.Error.Message == "" {
				t.Errorf("%d %s, want %d %s", a.Status, a.Body, row.status, row.code)
			}
			if next := fmt.Sprint(run.Head); row.status == 416 && a.Header.Get("X-Buffer-Next") != next {
				t.Errorf("X-Buffer-Next %q, want %s", a.Header.Get("X-Buffer-Next"), next)
			}
		})
	}
	g.Do("POST", "/runs/"+run.ID.String()+"/ack", "")
	for _, ask := range []string{fakeResponse, fakeResponse + "?stream=true"} {
		if a := g.Do("GET", ask, ""); a.Status != 410 || !strings.Contains(string(a.Body), `"released"`) {
			t.Errorf("released: %d %s", a.Status, a.Body)
		}
	}
	if a := g.Do("POST", fakeResponse+"/cancel", ""); a.Status != 410 {
		t.Errorf("released, cancel: %d %s", a.Status, a.Body)
	}
}

func TestBackground_WhatTheBufferDoesNotHaveIsForwarded(t *testing.T) {
	g := rig.New(t, rig.Options{})
	respond(t, g, "/openai/v1/responses")
	g.Chat() // an answer with an id that is no response's
	for _, row := range []struct{ name, method, path, body, credential string }{
		{"an unknown response", "GET", "/openai/v1/responses/resp_other?stream=true&starting_after=3", `{"stream":true}`, "k"},
		{"another caller's", "GET", fakeResponse, "", "other"},
		{"another caller's, to cancel", "POST", fakeResponse + "/cancel", "", "other"},
		{"another provider's", "GET", "/anthropic/v1/responses/resp_fake", "", "k"},
		{"no response", "GET", "/openai/v1/responses/chatcmpl-fake", "", "k"},
		{"no id", "GET", "/openai/v1/responses/", "", "k"},
		{"its items", "GET", fakeResponse + "/input_items?limit=2", "", "k"},
		{"its end", "DELETE", fakeResponse, "", "k"},
		{"its head", "HEAD", fakeResponse, "", "k"},
		{"something new", "POST", fakeResponse, "{}", "k"},
		{"no cancel", "GET", fakeResponse + "/cancel", "", "k"},
		{"a thing of another kind", "GET", "/openai/v1/xresponses/resp_fake", "", "k"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := g.Do(row.method, row.path, row.body, "Authorization", "Bearer "+row.credential)
			_, rest, _ := strings.Cut(row.path[1:], "/")
			sent := last(t, g)
			if sent.Method != row.method || sent.Target != "/primary/"+rest || string(sent.Body) != row.body || sent.Header.Get("Authorization") != "Bearer "+row.credential {
				t.Errorf("the provider was asked %s %s %q", sent.Method, sent.Target, sent.Body)
			}
			if a.Status != 404 || a.RunID() != "" {
				t.Errorf("%d %v, want the provider's 404", a.Status, a.Header)
			}
		})
	}
}

func TestBackground_AnyPathThatEndsSo(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"agent": "a key of sixteen or more"}})
	const key = "Bearer a key of sixteen or more"
	for _, base := range []string{"/openai/openai/deployments/x/responses", "/bedrock/openai/v1/responses", "/ollama/v1/responses", "/tape/primary/api/v1/responses"} {
		t.Run(base, func(t *testing.T) {
			run := respond(t, g, base+"?api-version=2025-04-01-preview", "Authorization", key)
			asked := len(g.Fake.Requests())
			a := g.Do("GET", base+"/resp_fake/?api-version=2025-04-01-preview&stream=true&starting_after=0", "", "Authorization", key)
			if a.Err != nil || a.RunID() != run.ID.String() || a.Header.Get("X-Buffer-From") != "1" {
				t.Errorf("%d %s, %v", a.Status, a.Body, a.Err)
			}
			wantStatus(t, g.Do("GET", base+"/resp%5Ffake?api-version=2025-04-01-preview", "", "Authorization", key), "completed")
			wantStatus(t, g.Do("POST", base+"/resp_fake/cancel", "", "Authorization", key), "completed")
			if n := len(g.Fake.Requests()); n != asked {
				t.Errorf("the provider was asked %d times more", n-asked)
			}
		})
	}
}

func TestBackground_InterruptedRunNeverLooksWhole(t *testing.T) {
	events := fakellm.Responses("a ", "b ", "c ")
	failed := fmt.Appendf(nil, "event: response.failed\ndata: %s\n\n", `{"type":"response.failed","sequence_number":5,"response":{"id":"resp_fake","object":"response", "status":"failed","error":{"code":"server_error","message":"boom"}}}`)
	told := fmt.Appendf(nil, "event: error\ndata: %s\n\n", `{"type":"error","sequence_number":5,"code":"server_error","message":"boom","param":null}`)
	for _, row := range []struct {
		name   string
		ending []fakellm.Op
		reason buffer.Reason
		want   string // of the object; empty: the last event's own
	}{
		{"a clean end", []fakellm.Op{fakellm.Done()}, buffer.EOFWithoutEnd, `"error":{"code":"eof_without_end",`},
		{"a reset", []fakellm.Op{fakellm.RST()}, buffer.Reset, `"error":{"code":"reset",`},
		{"response.failed", []fakellm.Op{fakellm.Bytes(failed), fakellm.Done()}, buffer.ProviderError, ""},
		{"an error event", []fakellm.Op{fakellm.Bytes(told), fakellm.Done()}, buffer.ProviderError, `"error":{"code":"provider_error",`},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{})
			ops := append([]fakellm.Op{fakellm.Head("text/event-stream")}, fakellm.Play(events[:5], 0)...)
			g.Fake.Script("primary", append(ops, row.ending...))
			run := respond(t, g, "/openai/v1/responses")
			if run.State != buffer.Interrupted || run.Reason != row.reason {
				t.Fatalf("%s, %s", run.State, run.Reason)
			}
			a := g.Do("GET", fakeResponse, "")
			wantStatus(t, a, "failed")
			if row.want == "" && !bytes.Equal(a.Body, eventIn(failed).Response) || !strings.Contains(string(a.Body), row.want) {
				t.Errorf("the object is %s", a.Body)
			}
			wantStatus(t, g.Do("POST", fakeResponse+"/cancel", ""), "failed")
			a = g.Do("GET", fakeResponse+"?stream=true&starting_after=3", "")
			rest, more := bytes.CutPrefix(a.Body, events[4])
			if row.reason == buffer.ProviderError {
				if a.Err != nil || !more || len(rest) == 0 {
					t.Errorf("%q, %v; want the provider's own error", a.Body, a.Err)
				}
				return
			}
			e := eventIn(rest)
			if a.Err == nil || !more || e.Type != "error" || e.Code != string(row.reason) || !strings.Contains(e.Message, run.ID.String()) {
				t.Errorf("%q, %v; want an error event and an abort", a.Body, a.Err)
			}
		})
	}
}

func TestBackground_Cancel(t *testing.T) {
	g := rig.New(t, rig.Options{})
	events := fakellm.Responses("a ", "b ", "c ")
	id, open := respondLive(t, g, events, 6)
	defer open()
	want := bytes.Replace(eventIn(events[1]).Response, []byte(`"in_progress"`), []byte(`"cancelled"`), 1)
	tail := g.Open("GET", fakeResponse+"?stream=true&starting_after=4", "")
	for range 2 {
		if a := g.Do("POST", fakeResponse+"/cancel", ""); a.Status != 200 || !bytes.Equal(a.Body, want) || a.Header.Get("X-Buffer-Status") != "cancelled" {
			t.Errorf("%d %s, want %s", a.Status, a.Body, want)
		}
	}
	if run := g.Await(id, buffer.Cancelled); run.Reason != buffer.CancelAsked {
		t.Errorf("the reason is %s", run.Reason)
	}
	if a := read(tail); a.Err == nil || !bytes.HasPrefix(a.Body, events[5]) {
		t.Errorf("the tail: %q, %v", a.Body, a.Err)
	}
	if a := g.Do("GET", fakeResponse, ""); !bytes.Equal(a.Body, want) {
		t.Errorf("afterwards: %s", a.Body)
	}
}

func TestBackground_AnswerInOnePiece(t *testing.T) {
	g := rig.New(t, rig.Options{})
	posted := g.Do("POST", "/openai/v1/responses", `{"model":"m","input":"hi"}`)
	if a := g.Do("GET", fakeResponse, ""); a.Status != 200 || !bytes.Equal(a.Body, posted.Body) || a.RunID() != posted.RunID() {
		t.Errorf("%d %s, want %s", a.Status, a.Body, posted.Body)
	}
	if a := g.Do("GET", fakeResponse+"?stream=true", ""); a.Status != 400 || !strings.Contains(string(a.Body), `"bad_request"`) {
		t.Errorf("as a stream: %d %s", a.Status, a.Body)
	}
}

// A response that its provider runs in the background goes on there when its run has ended.
func TestBackground_TheProvidersOwn(t *testing.T) {
	background := func(status string) string {
		return `{"id":"resp_fake","object":"response","background":true,"status":"` + status + `","output":[]}`
	}
	created := fmt.Appendf(nil, "data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":%s}\n\n", background("queued"))
	delta := []byte("data: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"a\"}\n\n")
	piece := fakellm.JSON(200, background("queued"))
	cutStream := []fakellm.Op{fakellm.Head("text/event-stream"), fakellm.Bytes(created), fakellm.Bytes(delta), fakellm.RST()}
	whole, refused := fakellm.JSON(200, background("completed")), fakellm.JSON(404, `{"error":{"message":"gone"}}`)
	for _, row := range []struct {
		name           string
		posted         []fakellm.Op
		provider       fakellm.Op
		get, cancelled int    // statuses
		want           string // in both bodies
	}{
		{"a body that says queued", []fakellm.Op{piece}, whole, 200, 200, `"completed"`},
		{"the same, and the provider has forgotten", []fakellm.Op{piece}, refused, 404, 404, "gone"},
		{"a stream that was cut", cutStream, whole, 200, 200, `"completed"`},
		{"the same, and the provider has forgotten", cutStream, refused, 200, 200, `"failed"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{})
			g.Fake.Script("primary/v1/responses/resp_fake", []fakellm.Op{row.provider})
			g.Fake.Script("primary", row.posted)
			respond(t, g, "/openai/v1/responses")
			if a := g.Do("GET", fakeResponse, `{"stream":false}`); a.Status != row.get || !strings.Contains(string(a.Body), row.want) {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if sent := last(t, g); sent.Target != "/primary/v1/responses/resp_fake" || string(sent.Body) != `{"stream":false}` {
				t.Errorf("the provider was asked %s %s %q", sent.Method, sent.Target, sent.Body)
			}
			if a := g.Do("POST", fakeResponse+"/cancel", ""); a.Status != row.cancelled || !strings.Contains(string(a.Body), row.want) {
				t.Errorf("cancel: %d %s", a.Status, a.Body)
			}
			if sent := last(t, g); sent.Target != "/primary/v1/responses/resp_fake/cancel" {
				t.Errorf("the provider was asked %s %s", sent.Method, sent.Target)
			}
		})
	}
}
