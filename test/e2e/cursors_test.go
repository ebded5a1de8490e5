package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// cursors are all the ways to say that the first n events were delivered.
func cursors(s speech, id string, n int) map[string]func(*rig.Rig) *http.Response {
	get := func(query string, headers ...string) func(*rig.Rig) *http.Response {
		return func(g *rig.Rig) *http.Response { return g.Open("GET", "/runs/"+id+"/resume"+query, "", headers...) }
	}
	return map[string]func(*rig.Rig) *http.Response{
		"from":                 get(fmt.Sprintf("?from=%d", n)),
		"from_byte":            get(fmt.Sprintf("?from_byte=%d", len(s.first(n)))),
		"starting_after":       get(fmt.Sprintf("?starting_after=%d", n-1)),
		"Last-Event-ID":        get("", "Last-Event-ID", fmt.Sprint(n-1)),
		"Last-Event-ID of run": get("?from=0", "Last-Event-ID", fmt.Sprintf("%s:%d", id, n-1)),
		"X-Buffer-From": func(g *rig.Rig) *http.Response {
			return g.Open("POST", s.path, s.body, "Idempotency-Key", "k"+fmt.Sprint(n), "X-Buffer-From", fmt.Sprint(n))
		},
	}
}

// A reader that is cut after any event, and says so in any of the ways there are, gets the rest: what
// it has and what it gets then are the answer, with one terminal.
func TestCursor_AfterAnyEventTheRestIsTheRest(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "responses")
	terminal := []byte("event: response.completed\n")
	for n := 1; n <= len(s.events); n++ {
		id, open := s.begin(t, g, max(n, s.preamble+1), "Idempotency-Key", "k"+fmt.Sprint(n))
		cut := g.Open("GET", "/runs/"+id+"/resume?from=0", "")
		read := take(t, cut, len(s.first(n)))
		cut.Body.Close()
		live := map[string]*http.Response{}
		for name, resume := range cursors(s, id, n) {
			live[name] = resume(g)
		}
		open()
		check := func(name string, a rig.Answer) {
			wantWhole(t, fmt.Sprintf("after %d events, by %s", n, name), a, s.rest(n))
			if count := bytes.Count(append(read[:len(read):len(read)], a.Body...), terminal); count != 1 {
				t.Errorf("after %d events, by %s: %d terminals", n, name, count)
			}
			if from := a.Header.Get("X-Buffer-From"); from != fmt.Sprint(n) {
				t.Errorf("after %d events, by %s: X-Buffer-From %s", n, name, from)
			}
		}
		for name, resp := range live {
			check(name+" while it ran", finish(resp))
		}
		g.Await(id, buffer.Completed)
		for name, resume := range cursors(s, id, n) {
			check(name+" after its end", finish(resume(g)))
		}
	}
}

// A sequence number that has not come yet is waited for on a live run, whatever stands between.
func TestCursor_SequenceNumberThatIsToComeIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "responses")
	const at = 6
	s.events = append(s.events[:at:at], append([][]byte{[]byte(": a comment\n\n")}, s.events[at:]...)...)
	id, open := s.begin(t, g, at+1)
	path := "/runs/" + id + "/resume?starting_after="
	if a := g.Do("GET", path+"8&wait=1ms", ""); a.Status != http.StatusNoContent {
		t.Errorf("a long poll for it: status %d, want 204", a.Status)
	}
	wantWhole(t, "what is stored of it", g.Do("GET", path+"8&follow=0", ""), nil)
	comment := g.Open("GET", path+fmt.Sprint(at-1), "")
	answers := make(chan rig.Answer, 2)
	for _, query := range []string{"8", "8&wait=1m"} {
		// Its headers wait with it: nobody knows yet where it starts.
		go func() { answers <- g.Do("GET", path+query, "") }()
	}
	waitFor(t, func() bool { return g.Runs.Readers(mustULID(t, id)) == 3 })
	open()
	for range 2 {
		if a := <-answers; a.Err != nil || a.Header.Get("X-Buffer-From") != "10" || len(a.Body) == 0 || !bytes.HasPrefix(s.rest(10), a.Body) {
			t.Errorf("who waited for it: from %s, %q, %v", a.Header.Get("X-Buffer-From"), a.Body, a.Err)
		}
	}
	wantWhole(t, "a comment follows its predecessor", finish(comment), s.rest(at))
	g.Await(id, buffer.Completed)
	if a := g.Do("GET", "/runs/"+id+"/resume?starting_after=99", ""); a.Status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a number that never came: status %d, want 416", a.Status)
	}
}

// A tail says where it started, so that who loses it before its first event knows where to go on.
func TestCursor_TailThatIsLostBeforeItsFirstEventGoesOn(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "anthropic")
	const head = 5
	id, open := s.begin(t, g, head)
	tail := g.Open("GET", "/runs/"+id+"/resume?from=tail", "")
	from := tail.Header.Get("X-Buffer-From")
	tail.Body.Close()
	if from != fmt.Sprint(head) {
		t.Errorf("from=tail started at %q, want %d", from, head)
	}
	open()
	g.Await(id, buffer.Completed)
	wantWhole(t, "where the tail started", g.Do("GET", "/runs/"+id+"/resume?from="+from, ""), s.rest(head))
}

// An answer on its way is read across as many connections as it takes, one event on each, and bought
// once.
func TestCursor_AnyNumberOfReconnectsReadOneAnswer(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "responses")
	var ops []fakellm.Op
	gates := make([]chan struct{}, len(s.events))
	for i, e := range s.events {
		if gates[i] = make(chan struct{}); i > s.preamble {
			ops = append(ops, fakellm.Gate(gates[i]))
		}
		ops = append(ops, fakellm.Bytes(e))
	}
	g.Fake.Script("primary", fakellm.Stream(s.contentType, ops...))
	ask := func(n int) *http.Response {
		if n%2 == 0 {
			return g.Open("POST", s.path, s.body, "Idempotency-Key", "turn", "X-Buffer-From", fmt.Sprint(n))
		}
		return g.Open("GET", fmt.Sprintf("/resume?key=turn&from=%d", n), "")
	}
	var read []byte
	for n, e := range s.events {
		resp := ask(n)
		close(gates[n])
		read = append(read, take(t, resp, len(e))...)
		resp.Body.Close()
	}
	if !bytes.Equal(read, s.all()) {
		t.Errorf("%d connections gave %q", len(s.events), read)
	}
	wantWhole(t, "after the last event", finish(ask(len(s.events))), nil)
	if n := g.Fake.Count("primary"); n != 1 {
		t.Errorf("bought %d times", n)
	}
}

// An EventSource that loses its connection again and again gets each event once, and one end.
func TestCursor_EventSourceThatReconnectsGetsEachEventOnce(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	const at = 5
	id, open := s.begin(t, g, at)
	var last []string
	var got []pageEvent
	connect := func() *page { return listen(t, g, "/runs/"+id+"/events", last...) }
	for len(got) < at-1 { // one event on each connection, while the run is live
		p := connect()
		e, ok := p.next()
		for ; ok && e.name != "message"; e, ok = p.next() {
		}
		p.resp.Body.Close()
		got, last = append(got, e), []string{"Last-Event-ID", e.id}
	}
	open()
	rest := connect().rest()
	got = append(got, only(rest, "message")...)
	if len(got) != len(s.events) {
		t.Fatalf("%d events came, want %d: %v", len(got), len(s.events), got)
	}
	for i, e := range got {
		if data := "data: " + e.data + "\n\n"; data != string(s.events[i]) || e.id != fmt.Sprintf("%s:%d", id, i) {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	if ends := only(rest, "completed"); len(ends) != 1 || rest[len(rest)-1].name != "completed" {
		t.Errorf("the end is %v", rest)
	}
	last = []string{"Last-Event-ID", rest[len(rest)-1].id}
	if a := g.Do("GET", "/runs/"+id+"/events", "", last...); a.Status != http.StatusNoContent {
		t.Errorf("after the end: status %d, want 204", a.Status)
	}
}
