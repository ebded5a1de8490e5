package sdk

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
			{"types", jsTypes},
			{"cut connections", jsCutConnections},
			{"given up", jsGivenUp},
			{"killed agent", jsKilledAgent},
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
	r := &rig{emulator: startEmulator(t), drivers: map[language][]string{js: {"node", filepath.Join("js", "driver.mjs")}}}

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

// runNode runs node in a folder and returns what it printed.
func runNode(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func jsUnitTests(t *testing.T, _ *rig) {
	files, err := filepath.Glob(filepath.Join(jsClient, "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	args := []string{"--test"}
	for _, file := range files {
		args = append(args, filepath.Join("test", filepath.Base(file)))
	}
	runNode(t, jsClient, args...)
}

// jsTypes checks the hand-written types against those of the SDKs.
func jsTypes(t *testing.T, _ *rig) {
	runNode(t, "js", filepath.Join("node_modules", "typescript", "bin", "tsc"), "-p", ".")
}

// jsCuts is how often the streams of one SDK are cut: in all, and of one stream.
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

// jsCutConnections cuts what lies between client and Spool, again and again, in heads and bodies. No
// SDK notices, and nothing is bought again.
func jsCutConnections(t *testing.T, r *rig) {
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
		for i := range jsCuts / jsCutsOfStream {
			c := named(t, names[i%len(names)])
			proxy := cutter.Start(t, r.spool, cutter.First(manyCuts(random)...))
			direct := c.job(fmt.Sprintf("js %s %d direct", c.name, i), r.emulator, "long")
			cut := c.job(fmt.Sprintf("js %s %d cut", c.name, i), proxy.URL+"/emu", "long")
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

// jsKilledAgent kills the agent of examples/file.mjs in mid-answer and starts it again.
func jsKilledAgent(t *testing.T, r *rig) {
	const text = "One word after another, with so long a pause between them that a reader can be killed in the middle."
	dir := t.TempDir()
	for name, target := range map[string]string{"openai": filepath.Join("js", "node_modules", "openai"), "@spool-dev/client": jsClient} {
		link := filepath.Join(dir, "node_modules", name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, err := filepath.Abs(target); err != nil {
			t.Fatal(err)
		} else if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile(filepath.Join(jsClient, "examples", "file.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(dir, "agent.mjs")
	if err := os.WriteFile(agent, source, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, resume := range []string{"whole", "rest"} {
		t.Run(resume, func(t *testing.T) {
			model := "lab-js-killed-" + resume
			command := func() *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "node", agent, "slowly")
				cmd.Stderr = os.Stderr
				cmd.Env = append(os.Environ(), "OPENAI_API_KEY=k", "SPOOL_URL="+r.spool, "PROVIDER=emu",
					"MODEL="+model, "RESUME="+resume, "STATE="+filepath.Join(dir, resume))
				return cmd
			}
			before := killAfter(t, command(), filepath.Join(dir, resume, "spool%3Acount"))
			after, err := command().Output()
			if err != nil {
				t.Fatal(err)
			}
			first, second := before, string(after)
			switch {
			case !strings.HasPrefix(text, first):
				t.Errorf("the killed agent read %q", first)
			case resume == "whole" && second != text:
				t.Errorf("the next one read %q", second)
			case resume == "rest" && (second == text || !strings.HasSuffix(text, second) || len(first)+len(second) < len(text)):
				t.Errorf("the killed agent read %q, the next one %q", first, second)
			}
			if n := r.purchases(t)[model]; n != 1 {
				t.Errorf("bought %d times", n)
			}
		})
	}
}

// read finds a state that says that something was read.
var read = regexp.MustCompile(`"position":[1-9]`)

// killAfter kills a program when its state says that it has read something and it has printed some of it,
// and returns all that it printed.
func killAfter(t *testing.T, cmd *exec.Cmd, state string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewReader(out)
	if start, err := printed.Peek(20); err != nil {
		t.Fatalf("it printed %q: %v", start, err)
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for kept, _ := os.ReadFile(state); !read.Match(kept); kept, _ = os.ReadFile(state) { // not there yet is not read yet
		<-again.C
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(printed)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended before it was killed")
	}
	return string(all)
}

// jsLive is what js/live.mjs does at a real buffer.
func jsLive(t *testing.T, r *rig) {
	const text = "One word after another, with so long a pause between them that a reader can be killed in the middle."
	want := map[string]string{
		"abort of the run":    `{"done":true,"state":"cancelled"}`,
		"abort of the reader": `{"done":true,"state":"completed"}`,
		"a page that follows": `{"state":"completed","text":"` + text + `"}`,
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
