package sdk

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/cutter"
)

var jsClient = filepath.Join("..", "..", "clients", "js")

// TestJSClient reads through our JavaScript client: its own tests, its types, and real SDKs on it.
func TestJSClient(t *testing.T) {
	r := newJSRig(t)
	t.Run("client", func(t *testing.T) {
		for _, group := range []struct {
			name string
			test func(*testing.T, *rig)
		}{
			{"unit tests", jsUnitTests},
			{"unit tests in Deno", denoUnitTests},
			{"package", jsPackage},
			{"cut connections", func(t *testing.T, r *rig) { jsCutConnections(t, r, js, jsCuts) }},
			{"cut connections in Deno", func(t *testing.T, r *rig) { jsCutConnections(t, r, deno, jsCutsOfStream) }},
			{"cut connections in workerd", workerCutConnections},
			{"given up", jsGivenUp},
			{"killed agents", jsKilledAgents},
			{"killed workerd", killedWorker},
			{"live", jsLive},
		} {
			t.Run(group.name, func(t *testing.T) {
				t.Parallel()
				group.test(t, r)
			})
		}
	})
}

// newJSRig is a rig without what the other languages need, whose Spool also stands before the server of
// a chat page.
func newJSRig(t *testing.T) *rig {
	t.Helper()
	lookAtSources(t, filepath.Join("..", ".."))
	installPackages(t, "js")
	bin := t.TempDir()
	build(t, filepath.Join("..", ".."), bin, "spool", "./cmd/spool")
	page := httptest.NewServer(http.HandlerFunc(chatPage))
	t.Cleanup(page.Close)
	r := &rig{emulator: startEmulator(t), drivers: map[language][]string{
		js:   {"node", filepath.Join("js", "driver.mjs")},
		deno: append(denoCommand(t, "run"), filepath.Join("js", "driver.mjs")),
	}}

	config := filepath.Join(t.TempDir(), "spool.yaml")
	providers := fmt.Sprintf("providers:\n  emu: {base_url: %q}\n  page: {base_url: %q, dialect: generic, generates: true}\n", r.emulator, page.URL)
	if err := os.WriteFile(config, []byte(providers), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + freePort(t)
	r.spool = "http://" + addr
	start(t, "spool", r.spool+"/readyz", filepath.Join(bin, "spool"), "serve", "--listen", addr, "--data", t.TempDir(), "--config", config)
	return r
}

// jsCuts is how often the streams of one SDK are cut: in all, in Node, and of one stream.
const jsCuts, jsCutsOfStream = 200, 50

// jsSDKs are the clients of each SDK that takes a fetch.
var jsSDKs = map[string][]string{
	"openai":            {"openai-chat", "openai-chat-helper", "openai-responses", "openai-responses-helper"},
	"@anthropic-ai/sdk": {"anthropic", "anthropic-helper"},
	"@google/genai":     {"genai"},
	"ai":                {"ai-openai-chat", "ai-openai-responses", "ai-anthropic", "ai-google"},
	"langchain":         {"langchain-openai", "langchain-anthropic"},
}

func named(t *testing.T, name string) client {
	t.Helper()
	for _, c := range clients {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no client %s", name)
	return client{}
}

// jsCutConnections cuts what lies between client and Spool, so many times for each SDK, in heads and
// bodies. No SDK notices, and nothing is bought again.
func jsCutConnections(t *testing.T, r *rig, in language, cuts int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	type mended struct {
		direct, cut job
		proxy       *cutter.Cutter
	}
	var (
		streams []mended
		jobs    []job
	)
	for _, names := range jsSDKs {
		for i := range cuts / jsCutsOfStream {
			c := named(t, names[i%len(names)])
			c.language = in
			proxy := cutter.Start(t, r.spool, cutter.First(manyCuts(random)...))
			direct := c.job(fmt.Sprintf("%s %s %d direct", in, c.name, i), r.emulator, "long")
			cut := c.job(fmt.Sprintf("%s %s %d cut", in, c.name, i), proxy.URL+"/emu", "long")
			cut.Durable = proxy.URL
			streams = append(streams, mended{direct, cut, proxy})
			jobs = append(jobs, direct, cut)
		}
	}
	results, calls := r.run(t, jobs), r.purchases(t)
	for _, s := range streams {
		t.Run(s.cut.ID, func(t *testing.T) {
			want, got := results[s.direct.ID], results[s.cut.ID]
			got.Reconnects = 0
			if !want.OK || got != want {
				t.Errorf("cut     %+v\nwithout %+v", got, want)
			}
			if n := calls[s.cut.Model]; n != 1 {
				t.Errorf("bought %d times", n)
			}
			if n := s.proxy.Cuts(); n < jsCutsOfStream {
				t.Errorf("cut %d times only", n)
			}
		})
	}
}

// manyCuts are like someCuts, of bodies, of heads and of requests. The call itself arrives: had it not,
// these cuts would let no answer through that says so.
func manyCuts(random *rand.Rand) []cutter.Cut {
	many := make([]cutter.Cut, jsCutsOfStream)
	for i := range many {
		cut := cutter.Body(random.Int64N(80))
		switch kind := random.IntN(6); {
		case kind == 0:
			cut = cutter.Answer(random.Int64N(80))
		case kind == 1 && i > 0:
			cut = cutter.Request(random.Int64N(80))
		}
		many[i] = cut.Somehow(random)
	}
	return many
}

// jsGivenUp leaves a client without a buffer in mid-answer: every SDK raises an error with the run's
// id and how far it came.
func jsGivenUp(t *testing.T, r *rig) {
	var jobs []job
	for sdk, names := range jsSDKs {
		proxy := cutter.Start(t, r.spool, func(n int) cutter.Cut {
			if n == 0 {
				return cutter.Body(1500)
			}
			return cutter.Answer(1)
		})
		j := named(t, names[0]).job("js given up "+sdk, proxy.URL+"/emu", "long")
		j.Durable, j.Tries = proxy.URL, 4
		jobs = append(jobs, j)
	}
	for id, got := range r.run(t, jobs) {
		t.Run(id, func(t *testing.T) {
			message := got.Error.Message
			if got.OK || got.Events == 0 || !strings.Contains(message, "unreachable: run 0") || !strings.Contains(message, "at position ") {
				t.Errorf("raised %+v", got)
			}
		})
	}
}

// jsLive is what js/live.mjs does at a real buffer.
func jsLive(t *testing.T, r *rig) {
	want := map[string]string{
		"abort of the run":    `{"done":true,"state":"cancelled"}`,
		"abort of the reader": `{"done":true,"state":"completed"}`,
		"a page that follows": `{"state":"completed","text":"` + slowly + `"}`,
		"a chat":              `{"sent":"One, two, three.","reloaded":"One, two, three.","status":"ready","nothing":null}`,
	}
	wantTold(t, runNode(t, "js", "live.mjs", r.spool), want)
}

// chatPage answers as the AI SDK's own server side does, slowly.
func chatPage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	for _, event := range []string{
		`{"type":"start","messageId":"answer"}`, `{"type":"text-start","id":"1"}`,
		`{"type":"text-delta","id":"1","delta":"One, "}`, `{"type":"text-delta","id":"1","delta":"two, "}`,
		`{"type":"text-delta","id":"1","delta":"three."}`,
		`{"type":"text-end","id":"1"}`, `{"type":"finish"}`, `[DONE]`,
	} {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // the write tells if the reader has left
		select {
		case <-r.Context().Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
