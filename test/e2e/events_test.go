package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// told runs a chat whose provider sends these bytes, each as one chunk or as it falls, and waits for
// its end.
func told(t *testing.T, g *rig.Rig, contentType string, events ...string) string {
	t.Helper()
	var all [][]byte
	for _, e := range events {
		all = append(all, []byte(e))
	}
	g.Fake.Script("primary", fakellm.Stream(contentType, fakellm.Play(all, 0)...))
	a := g.Chat()
	g.Await(a.RunID(), buffer.Completed, buffer.Interrupted, buffer.Failed)
	return a.RunID()
}

const (
	word = `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

func TestEvents_AWholeRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := told(t, g, "text/event-stream",
		"data: "+word+"\n\n", ": a comment\n\n", "event: named\ndata: "+word+"\n\n", "data: "+stop+"\n\n", "data: [DONE]\n\n")
	p := listen(t, g, "/runs/"+id+"/events")
	got := p.rest()
	end := got[len(got)-1]
	want := []pageEvent{
		{"message", word, id + ":0"}, {"named", word, id + ":2"}, {"message", stop, id + ":3"}, {"message", "[DONE]", id + ":4"},
		{"completed", end.data, id + ":5"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pageEvent{})); diff != "" {
		t.Error(diff)
	}
	if end.field(t, "state") != "completed" || end.field(t, "run") != id || end.field(t, "head") != 5.0 {
		t.Error(end.data)
	}
	if strings.Count(p.retry, " ") != 1 {
		t.Errorf("retry was told %q", p.retry)
	}
	for name, want := range map[string]string{"X-Buffer-Run-Id": id, "X-Buffer-Status": "completed", "X-Buffer-From": "0", "X-Buffer-Next": "5",
		"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "Location": "/runs/" + id} {
		if got := p.resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestEvents_TheBytesOfABlock(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := told(t, g, "text/event-stream",
		"\ufeffid: upstream\nretry: 1\ndata: "+word+"\n\n",
		"event: x\r\ndata: "+word+"\r\ndata:two\r\n\r\n",
		"id\ndata: "+word+"\r\r",
		": only\n\n", "retry: 5\n\n", "identity: kept\ndata: "+stop+"\n\n", "data: [DONE]\n\n")
	a := g.Do("GET", "/runs/"+id+"/events", "")
	body := string(a.Body)
	retry, _, _ := strings.Cut(body, "\n")
	if !strings.HasPrefix(retry, "retry: ") {
		t.Error("the first line is", retry)
	}
	want := retry + "\ndata: " + word + "\nid: " + id + ":0\n\n" +
		"event: x\ndata: " + word + "\ndata:two\nid: " + id + ":1\n\n" +
		"data: " + word + "\nid: " + id + ":2\n\n" +
		": only\n\n" +
		"identity: kept\ndata: " + stop + "\nid: " + id + ":5\n\n" +
		"data: [DONE]\nid: " + id + ":6\n\n" +
		"event: completed\ndata: {"
	if !strings.HasPrefix(body, want) || !strings.HasSuffix(body, "\nid: "+id+":7\n\n") {
		t.Error(cmp.Diff(want, body))
	}
}

func TestEvents_EverySpeechIsHeardWhole(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			g.Fake.Script("primary", fakellm.Stream(s.contentType, fakellm.Play(s.events, 0)...))
			id := g.Do("POST", s.path, s.body).RunID()
			g.Await(id, buffer.Completed)
			got := listen(t, g, "/runs/"+id+"/events").rest()
			if len(got) != len(s.events)+1 || got[len(got)-1].name != "completed" {
				t.Fatalf("%d events: %v", len(got), got)
			}
			for i, e := range got[:len(s.events)] {
				if want := fmt.Sprintf("%s:%d", id, i); e.id != want {
					t.Errorf("id %q, want %q", e.id, want)
				}
				said := string(s.events[i])
				switch {
				case strings.Contains(s.contentType, "amazon"):
					b, err := base64.StdEncoding.DecodeString(e.data)
					if e.name != "binary" || err != nil || string(b) != said {
						t.Errorf("%d: %v, %v", i, e, err)
					}
				case s.contentType == "text/event-stream":
					if !strings.Contains(said, "data: "+e.data) {
						t.Errorf("%d: %q of %q", i, e.data, said)
					}
				case e.name != "message" || strings.TrimRight(e.data, "\n") != strings.TrimRight(strings.ReplaceAll(said, "\r\n", "\n"), "\n"):
					t.Errorf("%d: %q of %q", i, e.data, said)
				}
			}
		})
	}
}

func TestEvents_WhatIsNoEvent(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for _, c := range []struct{ name, contentType, body, event, data string }{
		{"a whole body", "application/json", "{\r\n \"a\": 1\r}\n", "message", "{\n \"a\": 1\n}\n"},
		{"a body that is no text", "image/png", "\x89PNG\r\n\xff", "binary", base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\xff"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.Fake.Script("primary", []fakellm.Op{{Kind: "json", Status: 200, Headers: map[string][]string{"Content-Type": {c.contentType}}, Data: []byte(c.body)}})
			id := g.Do("POST", "/generic/x", `{}`).RunID()
			got := listen(t, g, "/runs/"+id+"/events").rest()
			want := pageEvent{c.event, c.data, id + ":0"}
			if len(got) != 2 || got[0] != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("a bare error at the end", func(t *testing.T) {
		id := told(t, g, "text/event-stream", "data: "+word+"\n\n", `{"error":{"code":503}}`)
		got := listen(t, g, "/runs/"+id+"/events").rest()
		if len(got) != 3 || got[1].data != `{"error":{"code":503}}` || got[2].name != "interrupted" || got[2].field(t, "reason") != "provider_error" {
			t.Error(got)
		}
	})
}

func TestEvents_EveryEnd(t *testing.T) {
	g := rig.New(t, rig.Options{})
	one := "data: " + word + "\n\n"
	live := func(t *testing.T) string {
		g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Data(one), fakellm.Hang(0)))
		resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
		resp.Body.Close()
		return resp.Header.Get("X-Buffer-Run-Id")
	}
	for _, c := range []struct {
		name, event, reason string
		head                int64
		run                 func(t *testing.T) string
	}{
		{"whole", "completed", "", 2, func(t *testing.T) string { return told(t, g, "text/event-stream", one, "data: [DONE]\n\n") }},
		{"cut", "interrupted", "eof_without_end", 1, func(t *testing.T) string { return told(t, g, "text/event-stream", one) }},
		{"stopped", "cancelled", "cancelled", 1, func(t *testing.T) string {
			id := live(t)
			g.Do("POST", "/runs/"+id+"/cancel", "")
			return id
		}},
		{"refused", "failed", "refused", 1, func(t *testing.T) string {
			g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(400, `{"error":{"type":"invalid_request_error"}}`)})
			return g.Chat().RunID()
		}},
		{"never answered", "failed", "reset", 0, func(t *testing.T) string {
			g.Fake.Script("primary", []fakellm.Op{fakellm.RST()})
			return g.Chat("X-Buffer-Budget", "attempts=1").RunID()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := c.run(t)
			path := "/runs/" + id + "/events"
			all := listen(t, g, path).rest()
			if int64(len(all)) != c.head+1 {
				t.Fatal(all)
			}
			end := all[c.head]
			if end.name != c.event || end.field(t, "reason") != c.reason || end.id != fmt.Sprintf("%s:%d", id, c.head) {
				t.Error(end)
			}
			if c.head > 0 {
				alone := listen(t, g, path, "Last-Event-ID", fmt.Sprintf("%s:%d", id, c.head-1)).rest()
				if len(alone) != 1 || alone[0] != end {
					t.Errorf("after the last chunk: %v, want the end alone", alone)
				}
			}
			for name, a := range map[string]rig.Answer{
				"Last-Event-ID": g.Do("GET", path, "", "Last-Event-ID", end.id),
				"number":        g.Do("GET", path+"?from=0", "", "Last-Event-ID", fmt.Sprint(c.head)),
				"from":          g.Do("GET", fmt.Sprintf("%s?from=%d", path, c.head), ""),
			} {
				if a.Status != 204 || len(a.Body) != 0 {
					t.Errorf("%s at the end: %d", name, a.Status)
				}
			}
			for name, a := range map[string]rig.Answer{
				"Last-Event-ID": g.Do("GET", path, "", "Last-Event-ID", fmt.Sprint(c.head+1)),
				"from":          g.Do("GET", fmt.Sprintf("%s?from=%d", path, c.head+1), ""),
			} {
				if a.Status != 416 || a.Header.Get("X-Buffer-Next") != fmt.Sprint(c.head) {
					t.Errorf("%s beyond the end: %d", name, a.Status)
				}
			}
			for from := range c.head {
				got := listen(t, g, fmt.Sprintf("%s?from=%d", path, from)).rest()
				if diff := cmp.Diff(all[from:], got, cmp.AllowUnexported(pageEvent{})); diff != "" {
					t.Errorf("from=%d: %s", from, diff)
				}
			}
		})
	}
}

func TestEvents_BadPositions(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := told(t, g, "text/event-stream", "data: "+word+"\n\n", "data: [DONE]\n\n")
	other := told(t, g, "text/event-stream", "data: "+word+"\n\n", "data: [DONE]\n\n")
	for _, last := range []string{"", "x", "-1", other + ":0", id + ":", id + ":x"} {
		req := g.Request("GET", "/runs/"+id+"/events", "")
		req.Header["Last-Event-Id"] = []string{last}
		resp, err := g.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(resp); a.Status != 400 || !bytes.Contains(a.Body, []byte("bad_position")) {
			t.Errorf("%q: %d %s", last, a.Status, a.Body)
		}
	}
	for query, want := range map[string]int{"from=-1": 400, "from=": 400, "wait=1s": 400, "from=3": 416} {
		if a := g.Do("GET", "/runs/"+id+"/events?"+query, ""); a.Status != want {
			t.Errorf("%s: %d, want %d", query, a.Status, want)
		}
	}
	if a := g.Do("GET", "/runs/01JZZZZZZZ0000000000000009/events", ""); a.Status != 404 {
		t.Error("unknown:", a.Status)
	}
	if a := g.Do("GET", "/runs/"+id+"/events", "", "Authorization", "Bearer another"); a.Status != 404 {
		t.Error("another caller's:", a.Status)
	}
	g.Do("POST", "/runs/"+id+"/ack", "")
	if a := g.Do("GET", "/runs/"+id+"/events", ""); a.Status != 410 {
		t.Error("released:", a.Status)
	}
}

func TestEvents_IdleAnswersAtOnce(t *testing.T) {
	g := rig.New(t, rig.Options{})
	gate, second := make(chan struct{}), make(chan struct{})
	g.Fake.Script("primary", []fakellm.Op{fakellm.Gate(gate), fakellm.JSON(503, `{}`)},
		append([]fakellm.Op{fakellm.Gate(second)}, fakellm.Stream("text/event-stream", fakellm.Data("data: "+word+"\n\ndata: [DONE]\n\n"))...))
	const id = "01JZZZZZZZ0000000000000007"
	caller := make(chan rig.Answer)
	go func() { caller <- g.Chat("X-Buffer-Run-Id", id) }()
	if err := g.Fake.Await(t.Context(), func(r []fakellm.Request) bool { return len(r) == 1 }); err != nil {
		t.Fatal(err)
	}
	p := listen(t, g, "/runs/"+id+"/events")
	if p.resp.Header.Get("X-Buffer-Status") != "idle" {
		t.Error(p.resp.Header)
	}
	first := p.until("up_to_date")
	if len(first) != 2 || first[0].name != "phase" || first[0].field(t, "run") != id {
		t.Error(first)
	}
	phase := func(want string) { // the phases come as they change
		t.Helper()
		for e := first[0]; e.field(t, "phase") != want; {
			var ok bool
			if e, ok = p.next(); !ok || e.name != "phase" {
				t.Fatalf("%v before %s", e, want)
			}
			first[0] = e
		}
	}
	phase("waiting_for_headers")
	close(gate)
	phase("retrying")
	phase("waiting_for_headers")
	close(second)
	rest := p.rest()
	if got := only(rest, "message"); len(got) != 2 || got[0].id != id+":0" {
		t.Error(rest)
	}
	if last := rest[len(rest)-1]; last.name != "completed" || last.id != id+":2" {
		t.Error(rest)
	}
	if a := <-caller; a.Status != 200 {
		t.Error(a.Status)
	}
}

func TestEvents_ALiveRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, events := paced(t, g, 20, 0)
	eventually(t, func() bool { return g.Do("GET", "/runs/"+id+"/resume?follow=0&from=10", "").Status == 200 })
	p := listen(t, g, "/runs/"+id+"/events?from=4")
	before := p.until("up_to_date")
	if n := len(before); n != 7 || before[0].id != id+":4" || before[n-1].field(t, "next") != 10.0 || before[n-1].id != id+":9" {
		t.Error(before)
	}
	attached(t, g, id, 1)
	stored := listen(t, g, "/runs/"+id+"/events?follow=0").rest()
	if len(stored) != 11 || stored[10].name != "up_to_date" {
		t.Error("without following:", stored)
	}
	open()
	rest := p.rest()
	if len(only(rest, "message")) != len(events)-10 || len(only(rest, "up_to_date")) != 0 || rest[len(rest)-1].name != "completed" {
		t.Error(rest)
	}
	attached(t, g, id, 0)
}

func TestEvents_Heartbeat(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, _ := paced(t, g, 4, 0)
	p := listen(t, g, "/runs/"+id+"/events", "X-Buffer-Heartbeat", "100ms")
	beat := p.until("heartbeat")
	last := beat[len(beat)-1]
	if last.field(t, "time") == nil || last.id != id+":1" {
		t.Error("a heartbeat has data and moves no id:", last)
	}
	open()
	p.rest()
	for _, bad := range []string{"x", "1ms"} {
		if a := g.Do("GET", "/runs/"+id+"/events", "", "X-Buffer-Heartbeat", bad); a.Status != 400 {
			t.Errorf("%s: %d", bad, a.Status)
		}
	}
}

func TestEvents_AReplayIsFewWrites(t *testing.T) {
	g := rig.New(t, rig.Options{})
	events := make([]string, 2000)
	for i := range events {
		events[i] = "data: " + word + "\n\n"
	}
	id := told(t, g, "text/event-stream", strings.Join(events, "")+"data: [DONE]\n\n")
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /runs/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nConnection: close\r\n\r\n", id)
	raw, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	writes, blocks := 0, 0
	for len(body) > 0 { // a chunk of the transfer for each write, since none is smaller than the server's buffer
		var size int
		line, rest, _ := bytes.Cut(body, []byte("\r\n"))
		if _, err := fmt.Sscanf(string(line), "%x", &size); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			writes++
		}
		blocks += bytes.Count(rest[:size], []byte("\n\n"))
		body = rest[size+2:]
	}
	if blocks != 2002 || writes > 8 {
		t.Errorf("%d blocks in %d writes", blocks, writes)
	}
}

// What is replayed from the file comes in pages whose room is used again: none before it was told.
func TestEvents_ReplayFromTheFileIsWhole(t *testing.T) {
	dir := t.TempDir()
	var id string
	const events = 3000
	dies(t, dir, func(t *testing.T, g *rig.Rig) {
		all := slices.Repeat([]string{"data: " + word + "\n\n"}, events)
		id = told(t, g, "text/event-stream", append(all, "data: [DONE]\n\n")...)
	})
	g := rig.New(t, rig.Options{Dir: dir})
	for range 5 {
		got := only(listen(t, g, "/runs/"+id+"/events").rest(), "message")
		if len(got) != events+1 {
			t.Fatalf("%d events, want %d", len(got), events+1)
		}
		for i, e := range got {
			if e.id != fmt.Sprintf("%s:%d", id, i) || e.data != word && i < events {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
	}
}

func TestEvents_ManyRuns(t *testing.T) {
	g := rig.New(t, rig.Options{})
	a := told(t, g, "text/event-stream", "data: "+word+"\n\n", "data: [DONE]\n\n")
	b, open, events := paced(t, g, 6, 0)
	eventually(t, func() bool { return g.Do("GET", "/runs/"+b+"/resume?follow=0&from=3", "").Status == 200 })
	path := "/events?run=" + a + "&run=" + b + ":1"
	p := listen(t, g, path)
	got := map[string]bool{}
	for !got[a+":2"] || !got[b+":2"] {
		e, ok := p.next()
		if !ok {
			t.Fatal("it ended while a run is live")
		}
		if e.name == "message" || e.name == "completed" {
			if got[e.id] {
				t.Error("twice:", e)
			}
			got[e.id] = true
		}
	}
	for _, id := range []string{a + ":0", a + ":1", b + ":1"} {
		if !got[id] {
			t.Error("missing:", id, got)
		}
	}
	if got[b+":0"] {
		t.Error("b starts at 1")
	}
	p.until("positions")
	if p.id != a+":2,"+b+":2" {
		t.Error("it would come back with", p.id)
	}
	p.resp.Body.Close()
	open()
	g.Await(b, buffer.Completed)

	p = listen(t, g, path, "Last-Event-ID", p.id)
	rest := p.rest()
	if messages := only(rest, "message"); len(messages) != len(events)-3 || messages[0].id != b+":3" {
		t.Error(rest)
	}
	if ends := only(rest, "completed"); len(ends) != 1 || ends[0].id != fmt.Sprintf("%s:%d", b, len(events)) {
		t.Error(rest)
	}
	if again := g.Do("GET", path, "", "Last-Event-ID", p.id); again.Status != 204 {
		t.Error("all is told:", again.Status)
	}
	// An id of one run says nothing of the other.
	one := listen(t, g, path, "Last-Event-ID", fmt.Sprintf("%s:%d", b, len(events))).rest()
	if len(only(one, "message")) != 2 || only(one, "message")[0].id != a+":0" {
		t.Error(one)
	}
	// The run that is told to its end may go meanwhile.
	g.Do("POST", "/runs/"+a+"/ack", "")
	if got := listen(t, g, path, "Last-Event-ID", a+":2,"+b+":3").rest(); len(only(got, "message")) != len(events)-4 {
		t.Error(got)
	}
}

func TestEvents_ManyRunsRefused(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	id := told(t, g, "text/event-stream", "data: "+word+"\n\n", "data: [DONE]\n\n")
	const other = "01JZZZZZZZ0000000000000009"
	many := strings.Repeat("&run="+other, 17)[1:]
	for _, c := range []struct {
		query, last string
		want        int
	}{
		{"", "", 400}, {"run=x", "", 400}, {"run=" + id + "&run=" + id, "", 400}, {"run=" + id + ":x", "", 400}, {"run=" + id + ":", "", 400},
		{many, "", 400}, {"run=" + id + "&run=" + other, "", 404}, {"run=" + id, other + ":1", 400}, {"run=" + id + ":9", "", 416}, {"run=" + id, "1,1", 400},
		{"run=" + id, "2", 204}, {"run=" + strings.ToLower(id), "", 200},
	} {
		var headers []string
		if c.last != "" {
			headers = []string{"Last-Event-ID", c.last}
		}
		if a := g.Do("GET", "/events?"+c.query, "", headers...); a.Status != c.want {
			t.Errorf("%q after %q: %d, want %d: %s", c.query, c.last, a.Status, c.want, a.Body)
		}
	}
}

func TestEvents_VercelsStream(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id, open, events := paced(t, g, 6, 0)
	resp := g.Open("GET", "/runs/"+id+"/stream?resume=1", "", "Last-Event-ID", "1")
	open()
	if a := read(resp); a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, bytes.Join(events, nil)) || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %q %v", a.Status, a.Body, a.Err)
	}
	g.Await(id, buffer.Completed)
	if a := g.Do("GET", "/runs/"+id+"/stream?resume=1", ""); a.Status != http.StatusNoContent {
		t.Error("nothing is live:", a.Status)
	}
	if a := g.Do("GET", "/runs/01JZZZZZZZ0000000000000009/stream?resume=1", ""); a.Status != http.StatusNotFound {
		t.Error("unknown:", a.Status)
	}
}
