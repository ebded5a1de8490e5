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

// The whole answer, from its opening event on, is there for who asks for no position, in the middle
// of a part and after the end, whatever others have read; the bare rest only for who asks for it.
func TestReplay_IsWholeUnlessASuffixIsAskedFor(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			at := s.preamble + 2 // in the middle of the text
			id, open := s.begin(t, g, at, "Idempotency-Key", s.name)
			rows := []struct {
				name string
				want []byte
				ask  func() *http.Response
			}{
				{"no position", s.all(), func() *http.Response { return g.Open("GET", "/runs/"+id+"/resume", "") }},
				{"from=0", s.all(), func() *http.Response { return g.Open("GET", "/runs/"+id+"/resume?from=0", "") }},
				{"the call again", s.all(), func() *http.Response { return g.Open("POST", s.path, s.body, "Idempotency-Key", s.name) }},
				{"the rest", s.rest(at - 1), func() *http.Response {
					return g.Open("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, at-1), "")
				}},
				{"the call again from there", s.rest(at - 1), func() *http.Response {
					return g.Open("POST", s.path, s.body, "Idempotency-Key", s.name, "X-Buffer-From", fmt.Sprint(at-1))
				}},
			}
			var live []*http.Response
			for _, row := range rows {
				live = append(live, row.ask())
			}
			open()
			for i, row := range rows {
				wantWhole(t, row.name+" while it ran", finish(live[i]), row.want)
			}
			g.Await(id, buffer.Completed)
			for _, row := range rows {
				wantWhole(t, row.name+" after its end", finish(row.ask()), row.want)
			}
		})
	}
}

// What a reader says besides its position changes nothing: one run has one index.
func TestReplay_NothingButThePositionDecidesWhatIsRead(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	const at, from = 3, 2
	id, open := s.begin(t, g, at)
	var live []*http.Response
	rows := []struct {
		name, query string
		headers     []string
	}{
		{"nothing", "", nil},
		{"Accept: an event stream", "", []string{"Accept", "text/event-stream"}},
		{"Accept: JSON", "", []string{"Accept", "application/json"}},
		{"Accept: none of it", "", []string{"Accept", "image/png;q=0.1"}},
		{"Accept-Encoding", "", []string{"Accept-Encoding", "gzip, br, zstd"}},
		{"a range of bytes", "", []string{"Range", "bytes=5-9"}},
		{"a condition", "", []string{"If-None-Match", "*", "If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"}},
		{"headers of a call", "", []string{"X-Buffer-Tag", "a=b", "X-Buffer-Heartbeat", "100ms", "X-Buffer-From", "4", "X-Buffer-On-Disconnect", "cancel"}},
	}
	ask := func(query string, headers ...string) *http.Response {
		return g.Open("GET", fmt.Sprintf("/runs/%s/resume?from=%d%s", id, from, query), "", headers...)
	}
	check := func(what string, a rig.Answer) {
		wantWhole(t, what, a, s.rest(from))
		if got := a.Header.Get("Content-Type") + a.Header.Get("Content-Encoding") + a.Header.Get("X-Buffer-From"); got != s.contentType+fmt.Sprint(from) {
			t.Errorf("%s: content type, encoding and start are %s", what, got)
		}
	}
	for _, row := range rows {
		live = append(live, ask(row.query, row.headers...))
	}
	open()
	for i, row := range rows {
		check(row.name+" while it ran", finish(live[i]))
	}
	g.Await(id, buffer.Completed)
	for _, row := range rows {
		check(row.name+" after its end", finish(ask(row.query, row.headers...)))
	}
}

// Readers of one run at once, the caller's repeats among them, get it whole and once each.
func TestReplay_ReadersAtOnceGetItOnceEach(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "anthropic")
	id, open := s.begin(t, g, 4, "Idempotency-Key", "offer")
	const readers = 12
	answers := make([]rig.Answer, readers)
	var reading sync.WaitGroup
	for i := range answers {
		reading.Go(func() {
			if i%2 == 0 {
				answers[i] = s.say(g, "Idempotency-Key", "offer")
				return
			}
			answers[i] = g.Do("GET", "/runs/"+id+"/resume", "")
		})
	}
	open()
	reading.Wait()
	for i, a := range answers {
		wantWhole(t, fmt.Sprint("reader ", i), a, s.all())
		if a.RunID() != id {
			t.Errorf("reader %d reads run %s", i, a.RunID())
		}
	}
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("bought %d times", n)
	}
}

// The end of an answer is no moment at which it cannot be read: not when its last byte has come, nor
// when its connection has ended.
func TestReplay_IsThereTheMomentTheAnswerEnds(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			s.play(g, len(s.events), nil)
			for range 5 {
				resp := g.Open("POST", s.path, s.body)
				path := "/runs/" + resp.Header.Get("X-Buffer-Run-Id") + "/resume"
				if got := take(t, resp, len(s.all())); !bytes.Equal(got, s.all()) {
					t.Fatalf("the answer is %q", got)
				}
				wantWhole(t, "at the last byte", g.Do("GET", path, ""), s.all())
				wantWhole(t, "at the end", finish(resp), nil)
				wantWhole(t, "after the end", g.Do("GET", path, ""), s.all())
			}
		})
	}
}

// However many events one read brings, each has its own position, and the last one is no less there
// than the others.
func TestReplay_AThousandEventsOfOneReadHaveAPositionEach(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{Plain: true})
	const n = 1000
	s := speech{path: "/generic/v1/anything", body: `{"stream":true}`, contentType: "text/event-stream"}
	for i := range n - 1 {
		s.events = append(s.events, fmt.Appendf(nil, "data: {\"n\":%d}\n\n", i))
	}
	s.events = append(s.events, []byte("data: [DONE]\n\n"))
	g.Fake.Script("primary", fakellm.Stream(s.contentType, fakellm.Bytes(s.all())))
	a := s.say(g)
	wantWhole(t, "the answer", a, s.all())
	if run := g.Await(a.RunID(), buffer.Completed); run.Head != n {
		t.Fatalf("%d positions, want %d", run.Head, n)
	}
	for from := range n + 1 {
		if from > 32 && from < n-32 && from%17 != 0 {
			continue
		}
		a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", a.RunID(), from), "")
		if a.Status != http.StatusOK || a.Err != nil || !bytes.Equal(a.Body, s.rest(from)) {
			t.Fatalf("from %d: status %d, %d bytes, %v", from, a.Status, len(a.Body), a.Err)
		}
	}
}

// A terminal that comes in one write with what goes before it is an event like any other: who has
// all but it gets it, alone and once.
func TestReplay_TerminalThatComesWithItsPredecessorIsDelivered(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			last := len(s.events) - 1
			at := s.preamble + 2
			gate := make(chan struct{})
			g.Fake.Script("primary", fakellm.Stream(s.contentType,
				fakellm.Bytes(s.first(at)), fakellm.Gate(gate), fakellm.Bytes(s.rest(at))))
			resp := g.Open("POST", s.path, s.body)
			id := resp.Header.Get("X-Buffer-Run-Id")
			resp.Body.Close()
			awaitHead(t, g, id, at-s.behind)
			waiting := g.Open("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, at-s.behind), "")
			close(gate)
			wantWhole(t, "who waited", finish(waiting), s.rest(at-s.behind))
			g.Await(id, buffer.Completed)
			wantWhole(t, "all but the terminal", g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, last), ""), s.events[last])
			wantWhole(t, "all", g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, last+1), ""), nil)
		})
	}
}

// The conversation that calls belong to is a tag; it never decides which run is read.
func TestReplay_TwoCallsOfOneConversationAreTwoRuns(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	tag := []string{"X-Buffer-Tag", "conversation=c,user=u", "X-Buffer-Operation", "turn"}
	keyed := func(key string) []string { return append(tag[:4:4], "Idempotency-Key", key) }
	a, b := spoken(t, "chat"), spoken(t, "chat")
	b.events = fakellm.Chat("another ", "answer ")
	idA, openA := a.begin(t, g, 3, keyed("A")...)
	idB, openB := b.begin(t, g, 2, keyed("B")...)
	if idA == idB {
		t.Fatal("two keys of one conversation are one run")
	}
	live := g.Open("POST", a.path, a.body, keyed("A")...)
	openB()
	openA()
	wantWhole(t, "A's retry", finish(live), a.all())
	g.Await(idB, buffer.Completed)
	wantWhole(t, "A by its key", g.Do("GET", "/resume?key=A", ""), a.all())
	wantWhole(t, "B by its key", g.Do("GET", "/resume?key=B", ""), b.all())
	wantWhole(t, "B's retry", b.say(g, keyed("B")...), b.all())
	if n := g.Fake.Count("primary"); n != 2 {
		t.Errorf("bought %d times, want 2", n)
	}
}
