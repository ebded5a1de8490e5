// Package rig runs a whole Spool inside a test: real SQLite, a real http.Server on the loopback and
// the scripted provider. Every response to its client is checked against the OpenAPI document, and
// every rig ends by checking all stored invariants, and that no secret of its own was logged.
package rig

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/trace"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
)

// Options change a rig; the zero value is a plain one.
type Options struct {
	Dir    string            // the data folder; default a new one
	Keys   map[string]string // configured buffer keys
	Limits api.Limits
	Runs   buffer.Config
	Pages  *api.Pages // default that of a server alone
	Clocks provider.Clocks
	// Routes are the providers, given the scripted provider's URL; default those of Rig.
	Routes func(fake string) map[string]provider.Route
	Fake   fakellm.Config
	// Origins are those whose pages may read answers.
	Origins []string
	// HTTP2 makes the client speak HTTP/2 alone, without TLS. The server speaks both.
	HTTP2 bool
	// Inside makes the client call the handler itself, without a socket: for tests that ask very often.
	Inside bool
	// Trace makes spans of what happens; nil makes none. Its owner closes it.
	Trace *trace.Tracer
	Plain bool // the client does not check responses: for load
	// Join opens a folder that another rig has open too.
	Join bool
	// Leaving ends when another rig has taken over; nil never does.
	Leaving context.Context
	// Fault steps into the log's work; nil does not.
	Fault func(sqlite.Point) error
	Log   *zap.Logger // default none; the test's own where it is verbose
}

// Rig is a Spool with its provider. Its providers are openai, anthropic, gemini, ollama and bedrock,
// all of them the scripted provider's route primary; generic, of which every POST generates; and
// tape, the scripted provider's recordings.
type Rig struct {
	URL    string
	Dir    string
	Fake   *fakellm.Server
	Store  *sqlite.Store
	Runs   *buffer.Runs
	Server *api.Server
	Client *http.Client

	http   *httptest.Server
	plants *plants
	t      testing.TB
}

// New starts a rig that stops with the test.
func New(t testing.TB, o Options) *Rig {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	g := &Rig{Dir: o.Dir, Fake: fakellm.Start(t, o.Fake), plants: newPlants(o), t: t}
	log := g.plants.hear(logOf(t, o))
	var err error
	if g.Store, err = sqlite.Open(t.Context(), sqlite.Config{Dir: o.Dir, Log: log, Fault: o.Fault, Join: o.Join}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Store.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := provider.NewClient(0, 0)
	metrics := api.NewMetrics()
	metrics.Disk(func() (used, free int64) { return 1, 1 })
	metrics.Reusable(func() int64 { return 1 })
	metrics.Retiring(func() int64 { return 1 })
	observers := buffer.Observers{metrics}
	if o.Trace != nil {
		observers = append(observers, o.Trace)
	}
	o.Runs.Observe = observers
	g.Runs = buffer.NewRuns(g.Store, client, o.Runs, log)
	g.Server = &api.Server{
		Store: g.Store, Runs: g.Runs, Client: client, Log: log, Limits: o.Limits, Pages: o.Pages, Cloudflare: true,
		Callers:   api.NewCallers([]byte(Secret), o.Keys),
		Tokens:    api.NewTokens([]byte(Secret), []byte(PreviousSecret)),
		Origins:   o.Origins,
		Providers: g.routes(o),
		Metrics:   metrics.Handler(g.Runs),
		Leaving:   o.Leaving,
	}
	handler := g.Server.Handler()
	if o.Trace != nil {
		handler = o.Trace.Continue(handler)
	}
	g.http = httptest.NewUnstartedServer(handler)
	g.http.Config.Protocols = protocols(true, true)
	g.http.Start()
	g.URL = g.http.URL
	g.Client = &http.Client{Transport: &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64, Protocols: protocols(!o.HTTP2, o.HTTP2),
	}}
	if o.Inside {
		g.Client.Transport = inside{handler}
	}
	if !o.Plain {
		g.Client.Transport = checked(t, g.Client.Transport)
	}
	sweeping, stop := context.WithCancel(context.Background())
	swept := make(chan struct{})
	go func() { defer close(swept); g.Runs.Sweep(sweeping) }()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel() // no grace
		g.Server.Drain()
		g.Runs.Drain(now)
		g.http.CloseClientConnections()
		g.http.Close()
		stop()
		<-swept
		if err := g.Store.Close(); err != nil {
			t.Error(err)
		}
		client.CloseIdle()
		g.Client.CloseIdleConnections()
		g.plants.wantNone(t, g.Server.Metrics)
		Check(t, o.Dir)
	})
	return g
}

func logOf(t testing.TB, o Options) *zap.Logger {
	switch {
	case o.Log != nil:
		return o.Log
	case testing.Verbose():
		return zaptest.NewLogger(t)
	}
	return zap.NewNop()
}

// The secrets of every rig: what its tokens are signed with, and what they were signed with before.
const (
	Secret         = "a secret of the rig"
	PreviousSecret = "the secret before it"
)

func protocols(one, two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(one)
	p.SetUnencryptedHTTP2(two)
	return p
}

// Check fails the test with every stored invariant that does not hold.
func Check(t testing.TB, dir string) {
	t.Helper()
	broken, err := sqlite.Check(context.Background(), dir)
	if err != nil {
		t.Error("check:", err)
	}
	for _, line := range broken {
		t.Error("broken:", line)
	}
}

func (g *Rig) routes(o Options) map[string]provider.Route {
	if o.Routes != nil {
		return o.Routes(g.Fake.URL)
	}
	c := o.Clocks
	routes := map[string]provider.Route{}
	for _, name := range []string{"openai", "anthropic", "gemini", "ollama", "bedrock"} {
		routes[name] = provider.Route{Name: name, BaseURL: Parse(g.t, g.Fake.URL+"/primary"), Clocks: c}
	}
	routes["generic"] = provider.Route{Name: "generic", BaseURL: Parse(g.t, g.Fake.URL+"/primary"), Dialect: provider.Generic, Generates: true, Clocks: c}
	routes["tape"] = provider.Route{Name: "tape", BaseURL: Parse(g.t, g.Fake.URL), Generates: true, Clocks: c}
	return routes
}

// Parse is a URL that is known to be one.
func Parse(t testing.TB, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustID(t testing.TB, text string) ulid.ULID {
	t.Helper()
	id, err := ulid.ParseStrict(text)
	if err != nil {
		t.Fatalf("run id %q: %v", text, err)
	}
	return id
}

// Answer is a response that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error // how the body ended: nil is a clean end
}

// RunID is the run that the answer came from.
func (a Answer) RunID() string { return a.Header.Get("X-Buffer-Run-Id") }

// Request makes a request with the credential k, and the given headers, name by name.
func (g *Rig) Request(method, path, body string, headers ...string) *http.Request {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	g.plants.plantRequest(req.Header)
	return req
}

// Do makes a request and reads its answer to the end.
func (g *Rig) Do(method, path, body string, headers ...string) Answer {
	g.t.Helper()
	resp := g.Open(method, path, body, headers...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Err: err}
}

// Open makes a request whose answer is to be read by the test, which must close its body.
func (g *Rig) Open(method, path, body string, headers ...string) *http.Response {
	g.t.Helper()
	resp, err := g.Client.Do(g.Request(method, path, body, headers...))
	if err != nil {
		g.t.Fatal(err)
	}
	return resp
}

// ChatBody asks for a streamed chat completion.
const ChatBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// Chat makes a streamed chat completion and reads it to the end.
func (g *Rig) Chat(headers ...string) Answer {
	g.t.Helper()
	return g.Do("POST", "/openai/v1/chat/completions", ChatBody, headers...)
}

// Await waits until the run is in one of the states, and returns it.
func (g *Rig) Await(id string, states ...buffer.State) buffer.Run {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	key := mustID(g.t, id)
	for {
		changed, stop := g.Store.Watch(key)
		run, err := g.Store.Get(ctx, key)
		if err != nil {
			stop()
			g.t.Fatal(err)
		}
		if slices.Contains(states, run.State) {
			stop()
			return run
		}
		select {
		case <-changed:
			stop()
		case <-ctx.Done():
			stop()
			g.t.Fatalf("run %s is %s, want one of %v", id, run.State, states)
		}
	}
}
