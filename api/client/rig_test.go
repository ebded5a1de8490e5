package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// quick is patience for tests: many tries, hardly a pause.
var quick = client.Patience{Tries: 50, Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond}

// hold is short, so that a stream begins before its run is decided.
var hold = api.Limits{Hold: 10 * time.Millisecond}

// agent is a program that calls through a transport, over a cutter, to a Spool.
type agent struct {
	*rig.Rig
	cutter    *cutter.Cutter
	transport *client.Transport
	http      *http.Client
	client    *client.Client // by the same way
}

func newAgent(t *testing.T, o rig.Options, plan func(n int) cutter.Cut) *agent {
	t.Helper()
	a := &agent{Rig: rig.New(t, o)}
	a.cutter = cutter.Start(t, a.Rig.URL, plan)
	wire := &http.Transport{}
	t.Cleanup(wire.CloseIdleConnections)
	a.transport = &client.Transport{BaseURL: a.cutter.URL, Base: wire, Patience: quick}
	a.http = &http.Client{Transport: a.transport}
	a.client = &client.Client{BaseURL: a.cutter.URL, Credential: "k", HTTP: &http.Client{Transport: wire}, Patience: quick}
	return a
}

// armed cuts nothing but the next connection after arm.
type armed struct{ next atomic.Pointer[cutter.Cut] }

func (a *armed) arm(l cutter.Cut) { a.next.Store(&l) }

func (a *armed) plan(n int) cutter.Cut {
	if l := a.next.Swap(nil); l != nil {
		return *l
	}
	return cutter.Whole(n)
}

// fresh makes the next request use a new connection.
func (a *agent) fresh() { a.transport.Base.(*http.Transport).CloseIdleConnections() }

// speech is one dialect as it is asked for and answered.
type speech struct {
	name, path, contentType string
	events                  [][]byte
}

const asked = `{"model":"m","stream":true}`

func speeches() []speech {
	texts := strings.SplitAfter(fakellm.DefaultText, " ")
	return []speech{
		{"chat", "/openai/v1/chat/completions", "text/event-stream", fakellm.Chat(texts...)},
		{"responses", "/openai/v1/responses", "text/event-stream", fakellm.Responses(texts...)},
		{"anthropic", "/anthropic/v1/messages", "text/event-stream", fakellm.Messages(texts...)},
		{"gemini", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse", "text/event-stream", fakellm.GeminiSSE(texts...)},
		{"gemini array", "/gemini/v1beta/models/m:streamGenerateContent", "application/json", fakellm.GeminiArray(texts...)},
		{"ollama", "/ollama/api/chat", "application/x-ndjson", fakellm.OllamaChat(texts...)},
		{"bedrock", "/bedrock/model/m/converse-stream", "application/vnd.amazon.eventstream", fakellm.Converse(texts...)},
	}
}

func (s speech) all() []byte        { return bytes.Join(s.events, nil) }
func (s speech) first(n int) []byte { return bytes.Join(s.events[:n], nil) }

// stream is the whole answer as the provider sends it.
func (s speech) stream() []fakellm.Op {
	return fakellm.Stream(s.contentType, fakellm.Play(s.events, 0)...)
}

// gated is the answer, which waits at the gate after n events.
func (s speech) gated(n int, gate <-chan struct{}) []fakellm.Op {
	ops := append(fakellm.Play(s.events[:n], 0), fakellm.Gate(gate))
	return fakellm.Stream(s.contentType, append(ops, fakellm.Play(s.events[n:], 0)...)...)
}

// request is the call of a speech, with headers name by name.
func (a *agent) request(ctx context.Context, path, body string, headers ...string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "POST", a.cutter.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the paths are constants of the tests
	}
	req.Header.Set("Authorization", "Bearer k")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// call makes a call and reads its answer to the end. An answer that did not begin has status 0.
func (a *agent) call(t *testing.T, path, body string, headers ...string) rig.Answer {
	t.Helper()
	resp, err := a.http.Do(a.request(t.Context(), path, body, headers...))
	if err != nil {
		return rig.Answer{Err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return rig.Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Err: err}
}

func wantWhole(t *testing.T, a rig.Answer, want []byte) {
	t.Helper()
	if a.Status != http.StatusOK || a.Err != nil || !bytes.Equal(a.Body, want) {
		t.Errorf("status %d, %d bytes, ended with %v; want %d bytes and a clean end", a.Status, len(a.Body), a.Err, len(want))
	}
}
