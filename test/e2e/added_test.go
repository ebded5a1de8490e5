package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// On a connection that is quiet, the buffer adds half a comment between two events where every SDK of
// the dialect takes that, and else nothing: no comment of its own, no id, no blank line. A reader that
// counts bytes meets nothing of it.
func TestAdded_HeartbeatsOnlyWhereEverySDKTakesThem(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{Limits: api.Limits{Heartbeat: 20 * time.Millisecond}})
	pulse := pulseOf(t, g)
	const beat = ": hb\n"
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			at := s.preamble + 2
			id, open := s.begin(t, g, at, "Idempotency-Key", s.name)
			beats := slices.Contains([]string{"chat", "responses", "anthropic"}, s.name)
			caller := g.Open("POST", s.path, s.body, "Idempotency-Key", s.name)
			without := g.Open("POST", s.path, s.body, "Idempotency-Key", s.name, "X-Buffer-Heartbeat", "off")
			resumed := g.Open("GET", "/runs/"+id+"/resume", "", "X-Buffer-Heartbeat", "100ms")
			begun := take(t, caller, len(s.first(at-s.behind)))
			pulse()
			if beats {
				begun = append(begun, take(t, caller, 2*len(beat))...)
			}
			open()
			a := finish(caller)
			a.Body = append(begun, a.Body...)
			if n := bytes.Count(a.Body, []byte(beat)); (n > 0) != beats {
				t.Errorf("%d heartbeats in %q", n, a.Body)
			}
			for i, event := range s.events {
				if !bytes.Contains(a.Body, event) {
					t.Errorf("something stands inside event %d: %q", i, a.Body)
				}
			}
			a.Body = bytes.ReplaceAll(a.Body, []byte(beat), nil)
			wantWhole(t, "the answer but for heartbeats", a, s.all())
			wantWhole(t, "without heartbeats", finish(without), s.all())
			wantWhole(t, "/resume", finish(resumed), s.all())
		})
	}
}

// pulseOf starts a quiet call whose heartbeats are the clock of a test: pulse returns when a
// connection that was open before has been quiet for at least three of them.
func pulseOf(t *testing.T, g *rig.Rig) (pulse func()) {
	s := spoken(t, "chat")
	s.path = "/openai/pulse/v1/chat/completions"
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	ops := append(fakellm.Play(s.events[:2], 0), fakellm.Gate(gate))
	g.Fake.Script("primary/pulse", fakellm.Stream(s.contentType, ops...))
	return func() {
		resp := g.Open("POST", s.path, s.body, "Idempotency-Key", "pulse")
		take(t, resp, len(s.first(2))+3*len(": hb\n"))
		resp.Body.Close()
	}
}

// ours are the headers that the buffer may add to an answer. SDKs read meaning into many others.
var ours = []string{
	"Cache-Control", "X-Accel-Buffering", "Location", "Date", "Content-Type", "Cf-Aig-Run-Id", "Idempotent-Replayed",
	"X-Buffer-Run-Id", "X-Buffer-Status", "X-Buffer-From", "X-Buffer-Next", "X-Buffer-Attempts",
}

// The headers of an answer are the provider's and the buffer's few, at the first call and at each
// replay; none of the buffer's has a name that an SDK takes a run's or a request's id from.
func TestAdded_HeadersAreTheProvidersAndFewOfOurs(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	for _, row := range []struct {
		name string
		sent map[string]string
	}{
		{"a bare provider", nil},
		{"a provider with many", map[string]string{
			"Content-Location": "/threads/t/runs/r", "X-Request-Id": "req_1", "Request-Id": "req_2", "Openai-Processing-Ms": "12",
			"X-Ratelimit-Remaining-Requests": "3", "Link": "</x>; rel=next", "Etag": `"e"`, "Server": "them", "X-Run-Id": "theirs",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			head := fakellm.Head(s.contentType)
			for name, v := range row.sent {
				head.Headers[name] = []string{v}
			}
			head.Headers["Set-Cookie"] = []string{"a=b"}
			g.Fake.Script("primary", append(append([]fakellm.Op{head}, fakellm.Play(s.events, 0)...), fakellm.Done()))
			first := s.say(g, "Idempotency-Key", row.name)
			g.Await(first.RunID(), buffer.Completed)
			for what, a := range map[string]rig.Answer{
				"the call": first, "its repeat": s.say(g, "Idempotency-Key", row.name), "/resume": g.Do("GET", first.Header.Get("Location")+"/resume", ""),
			} {
				wantHeaders(t, what, a.Header, row.sent)
			}
		})
	}
}

func wantHeaders(t *testing.T, what string, got http.Header, sent map[string]string) {
	t.Helper()
	for name, want := range sent {
		if got.Get(name) != want || len(got.Values(name)) != 1 {
			t.Errorf("%s: %s is %q, the provider sent %q", what, name, got.Values(name), want)
		}
	}
	for name, v := range got {
		if _, theirs := sent[name]; !theirs && !slices.Contains(ours, name) {
			t.Errorf("%s: %s: %s was added", what, name, strings.Join(v, ", "))
		}
	}
}
