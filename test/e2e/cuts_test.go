package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// withFallback is every built-in provider with a fallback that is approved for models m0 to m9.
func withFallback(t *testing.T) func(string) map[string]provider.Route {
	models := map[string]string{}
	for i := range 10 {
		models[fmt.Sprint("m", i)] = "other"
	}
	return func(fake string) map[string]provider.Route {
		fallback := provider.Route{Name: "fallback", BaseURL: rig.Parse(t, fake+"/fallback")}
		routes := map[string]provider.Route{}
		for _, name := range []string{"openai", "anthropic", "gemini", "ollama", "bedrock"} {
			routes[name] = provider.Route{
				Name: name, BaseURL: rig.Parse(t, fake+"/primary"),
				Fallbacks: []provider.Fallback{{Route: &fallback, Models: models, Tools: true, Schema: true, OwnQuota: true}},
			}
		}
		return routes
	}
}

// framed is a head whose body is delimited in another way.
func framed(contentType, framing string) fakellm.Op {
	op := fakellm.Head(contentType)
	op.Framing = framing
	return op
}

// An answer that stops without the proof of its end is interrupted, however politely it stopped. What
// came is kept, and nothing is bought again: not by the buffer, which has attempts and a fallback
// left, nor for who asks again.
func TestCut_NothingIsBoughtAgainAfterTheFirstContent(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{Routes: withFallback(t)})
	for _, s := range speeches() {
		for i, cut := range []struct {
			name   string
			head   fakellm.Op
			end    []fakellm.Op
			reason buffer.Reason
		}{
			{"chunked and complete", fakellm.Head(s.contentType), []fakellm.Op{fakellm.End()}, buffer.EOFWithoutEnd},
			{"as long as it said", framed(s.contentType, "length"), nil, buffer.EOFWithoutEnd},
			{"until the close", framed(s.contentType, "close"), []fakellm.Op{fakellm.Fin()}, buffer.EOFWithoutEnd},
			{"closed in the middle", fakellm.Head(s.contentType), []fakellm.Op{fakellm.Fin()}, buffer.Reset},
			{"reset", fakellm.Head(s.contentType), []fakellm.Op{fakellm.RST()}, buffer.Reset},
		} {
			t.Run(s.name+"/"+cut.name, func(t *testing.T) {
				s := s.of(fmt.Sprint("m", i))
				n := s.preamble + 2
				g.Fake.Script("primary", append(append([]fakellm.Op{cut.head}, fakellm.Play(s.events[:n], 0)...), cut.end...))
				bought := g.Fake.Count("primary")
				a := s.say(g, "Idempotency-Key", t.Name())
				run := g.Await(a.RunID(), buffer.Interrupted, buffer.Completed, buffer.Failed)
				if run.State != buffer.Interrupted || run.Reason != cut.reason {
					t.Fatalf("the run is %s, reason %s; want interrupted, %s", run.State, run.Reason, cut.reason)
				}
				stored := g.Do("GET", "/runs/"+a.RunID()+"/resume", "")
				if !errors.Is(stored.Err, io.ErrUnexpectedEOF) || int64(len(stored.Body)) != run.Bytes || !bytes.HasPrefix(s.first(n), stored.Body) || run.Head < int64(n-s.behind) {
					t.Errorf("%d of %d events are stored, in %d bytes, and end with %v", run.Head, n, len(stored.Body), stored.Err)
				}
				again := s.say(g, "Idempotency-Key", t.Name())
				for what, b := range map[string]rig.Answer{"the answer": a, "the call again": again} {
					if b.Err == nil || !bytes.HasPrefix(b.Body, stored.Body) || b.RunID() != a.RunID() {
						t.Errorf("%s: %d bytes of run %s, ended with %v", what, len(b.Body), b.RunID(), b.Err)
					}
				}
				if !bytes.Equal(a.Body, again.Body) {
					t.Errorf("the call again gives %q, first it was %q", again.Body, a.Body)
				}
				if n := g.Fake.Count("primary") - bought; n != 1 {
					t.Errorf("bought %d times", n)
				}
			})
		}
	}
	if n := g.Fake.Count("fallback"); n != 0 {
		t.Errorf("the fallback was asked %d times", n)
	}
}

// An answer that stops before its first content is no answer: its caller gets a failure, never a
// success without text.
func TestCut_BeforeTheFirstContentIsAFailure(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		for name, end := range map[string]fakellm.Op{"complete": fakellm.End(), "closed": fakellm.Fin(), "reset": fakellm.RST()} {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				s := s.of("model-" + name)
				ops := append([]fakellm.Op{fakellm.Head(s.contentType)}, fakellm.Play(s.events[:s.preamble], 0)...)
				g.Fake.Script("primary", append(ops, end))
				a := s.say(g, "X-Buffer-Budget", "attempts=1")
				if a.Status < 500 || len(a.Body) == 0 {
					t.Errorf("status %d %q", a.Status, a.Body)
				}
				g.Await(a.RunID(), buffer.Failed)
			})
		}
	}
}

// An error that the provider tells in its stream is what the answer ends with, for who was there and
// for who comes later; the run is no success.
func TestCut_ProvidersErrorIsReplayedInEveryDialect(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, row := range []struct{ speech, event string }{
		{"chat", "data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"code\":null}}\n\n"},
		{"responses", "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":6,\"response\":{\"id\":\"resp_fake\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}}\n\n"},
		{"responses", "event: error\ndata: {\"type\":\"error\",\"sequence_number\":6,\"code\":\"server_error\",\"message\":\"boom\",\"param\":null}\n\n"},
		{"anthropic", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n"},
		{"gemini", "data: {\"error\":{\"code\":503,\"message\":\"boom\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n"},
		{"gemini array", "\n,\r\n{\"error\":{\"code\":503,\"message\":\"boom\",\"status\":\"UNAVAILABLE\"}}\n]"},
		{"ollama", "{\"error\":\"boom\"}\n"},
		{"bedrock", string(fakellm.AWSException("internalServerException", "boom"))},
	} {
		t.Run(fmt.Sprint(row.speech, " ", len(row.event)), func(t *testing.T) {
			s := spoken(t, row.speech)
			n := s.preamble + 2
			s.events = append(s.events[:n:n], []byte(row.event))
			ops := append([]fakellm.Op{fakellm.Head(s.contentType)}, fakellm.Play(s.events, 0)...)
			g.Fake.Script("primary", append(ops, fakellm.End()))
			a := s.say(g, "Idempotency-Key", t.Name())
			wantWhole(t, "the answer", a, s.all())
			if run := g.Await(a.RunID(), buffer.Interrupted, buffer.Completed, buffer.Failed); run.State != buffer.Interrupted || run.Reason != buffer.ProviderError || run.Head != int64(n+1) {
				t.Errorf("the run is %s, reason %s, with %d events", run.State, run.Reason, run.Head)
			}
			wantWhole(t, "the call again", s.say(g, "Idempotency-Key", t.Name()), s.all())
			late := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", a.RunID(), n), "")
			if !bytes.Equal(late.Body, s.events[n]) || late.Err == nil {
				t.Errorf("who comes late gets %q, %v", late.Body, late.Err)
			}
		})
	}
}
