package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// patience is how long a test waits for what must come. Nothing takes as long; a test that waits for
// what never comes ends by it.
const patience = 15 * time.Second

// speech is one dialect as it is asked for and as the scripted provider speaks it.
type speech struct {
	name, path, body, contentType string
	events                        [][]byte // the last one is, or holds, the proof of the end
	preamble                      int      // events before the first content
	behind                        int      // of the events that came, those whose end only the next one shows
}

// speeches is the same short answer in every dialect.
func speeches() []speech {
	const sse = "text/event-stream"
	asked := `{"model":"m","stream":true}`
	texts := []string{"one ", "two ", "three ", "four "}
	return []speech{
		{"chat", "/openai/v1/chat/completions", asked, sse, fakellm.Chat(texts...), 1, 0},
		{"responses", "/openai/v1/responses", asked, sse, fakellm.Responses(texts...), 4, 0},
		{"anthropic", "/anthropic/v1/messages", asked, sse, fakellm.Messages(texts...), 3, 0},
		{"gemini", "/gemini/v1beta/models/g:streamGenerateContent?alt=sse", asked, sse, fakellm.GeminiSSE(texts...), 0, 0},
		{"gemini array", "/gemini/v1beta/models/g:streamGenerateContent", asked, "application/json", fakellm.GeminiArray(texts...), 0, 1},
		{"ollama", "/ollama/api/chat", asked, "application/x-ndjson", fakellm.OllamaChat(texts...), 0, 0},
		{"bedrock", "/bedrock/model/m/converse-stream", asked, "application/vnd.amazon.eventstream", fakellm.Converse(texts...), 1, 0},
	}
}

// spoken returns the speech of that name.
func spoken(t *testing.T, name string) speech {
	t.Helper()
	for _, s := range speeches() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no dialect %s", name)
	return speech{}
}

// all is the whole answer.
func (s speech) all() []byte { return bytes.Join(s.events, nil) }

// first is the answer's first n events.
func (s speech) first(n int) []byte { return bytes.Join(s.events[:n], nil) }

// rest is the answer from the event at position n on.
func (s speech) rest(n int) []byte { return bytes.Join(s.events[n:], nil) }

// of is the same for another model, whose failures open nobody else's circuit.
func (s speech) of(model string) speech {
	s.body = strings.Replace(s.body, `"m"`, `"`+model+`"`, 1)
	s.path = strings.NewReplacer("/models/g:", "/models/"+model+":", "/model/m/", "/model/"+model+"/").Replace(s.path)
	return s
}

// play scripts the whole answer, which waits at the gate after its first n events; a nil gate is none.
func (s speech) play(g *rig.Rig, n int, gate <-chan struct{}) {
	ops := fakellm.Play(s.events[:n], 0)
	if gate != nil {
		ops = append(ops, fakellm.Gate(gate))
	}
	g.Fake.Script("primary", fakellm.Stream(s.contentType, append(ops, fakellm.Play(s.events[n:], 0)...)...))
}

// say makes the call and reads its answer to the end.
func (s speech) say(g *rig.Rig, headers ...string) rig.Answer {
	return g.Do("POST", s.path, s.body, headers...)
}

// begin starts the call and returns once what can be of its first n events, content among them, is
// stored and the provider waits at the gate. Its caller has left by then.
func (s speech) begin(t *testing.T, g *rig.Rig, n int, headers ...string) (id string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	s.play(g, n, gate)
	resp := g.Open("POST", s.path, s.body, headers...)
	resp.Body.Close()
	id = resp.Header.Get("X-Buffer-Run-Id")
	awaitHead(t, g, id, n-s.behind)
	return id, func() { close(gate) }
}

// awaitHead returns once the run has so many chunks.
func awaitHead(t *testing.T, g *rig.Rig, id string, head int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := mustULID(t, id)
	for {
		changed, stop := g.Store.Watch(key)
		run, err := g.Store.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if run.Head >= int64(head) {
			stop()
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("run %s has %d chunks, want %d", id, run.Head, head)
		}
		stop()
	}
}

func mustULID(t *testing.T, text string) ulid.ULID {
	t.Helper()
	id, err := ulid.ParseStrict(text)
	if err != nil {
		t.Fatalf("run %q: %v", text, err)
	}
	return id
}

// take reads n bytes of an answer that goes on.
func take(t *testing.T, resp *http.Response, n int) []byte {
	t.Helper()
	late := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer late.Stop()
	b := make([]byte, n)
	got, err := io.ReadFull(resp.Body, b)
	if err != nil {
		t.Fatalf("%d of %d bytes came, then %v", got, n, err)
	}
	return b
}

// finish reads the rest of an answer and closes it.
func finish(resp *http.Response) rig.Answer {
	late := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer late.Stop()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return rig.Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Err: err}
}

// wantWhole fails the test unless the answer is these bytes and a clean end.
func wantWhole(t *testing.T, what string, a rig.Answer, want []byte) {
	t.Helper()
	if a.Status != http.StatusOK || a.Err != nil || !bytes.Equal(a.Body, want) {
		t.Errorf("%s: status %d, %d bytes, ended with %v; want %d bytes and a clean end\n%q", what, a.Status, len(a.Body), a.Err, len(want), a.Body)
	}
}
