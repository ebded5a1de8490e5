package test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// Every scripted failure of a provider, end to end: what the ledger, the run and the client say.
func TestScripts_EndAsTheyShould(t *testing.T) {
	files := []string{"testdata/provider-scripts.json", "testdata/provider-scripts-edges.json"}
	if foreign := os.Getenv("SPOOL_PROVIDER_SCRIPTS"); foreign != "" {
		files = []string{foreign}
	}
	for _, path := range files {
		for _, bug := range loadBugs(t, path) {
			t.Run(bug.ID, func(t *testing.T) {
				t.Parallel()
				playBug(t, bug)
			})
		}
	}
}

func loadBugs(t *testing.T, path string) []fakellm.Bug {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bugs, err := fakellm.ParseBugs(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return bugs
}

// calls are how each protocol of the scripts is asked for a stream.
var calls = map[string]string{
	"openai_chat":      "/chat/completions",
	"openai_responses": "/responses",
	"anthropic":        "/messages",
	"gemini":           "/models/m:streamGenerateContent?alt=sse",
	"bedrock":          "/model/m/converse-stream",
	"ollama":           "/api/chat",
	"openai":           "/chat/completions",
}

func playBug(t *testing.T, bug fakellm.Bug) {
	g := rig.New(t, rig.Options{Clocks: clocksOf(bug.Limits), Routes: func(fake string) map[string]provider.Route { return routesOf(t, bug, fake) }})
	g.Fake.Script("primary", bug.Primary...)
	if len(bug.Fallback) > 0 {
		g.Fake.Script("fallback", bug.Fallback...)
	}
	path, ok := calls[bug.Protocol]
	if !ok {
		t.Fatalf("protocol %s is not known", bug.Protocol)
	}
	headers := []string{"Idempotency-Key", bug.ID}
	if bug.Limits.Attempts > 0 {
		headers = append(headers, "X-Buffer-Budget", fmt.Sprintf("attempts=%d", bug.Limits.Attempts))
	}
	resp := g.Open("POST", "/primary"+path, `{"model":"m","stream":true}`, headers...)
	id := resp.Header.Get(wire.HeaderRunID)
	body, bodyErr := readAs(bug.Client, resp)
	run := g.Await(id, buffer.Completed, buffer.Interrupted, buffer.Failed, buffer.Cancelled)

	if got, want := string(run.State), bug.Expect.State; got != want {
		t.Errorf("state %s (%s), want %s", got, run.Reason, want)
	}
	if bug.Expect.Reason != "" && string(run.Reason) != bug.Expect.Reason {
		t.Errorf("reason %s, want %s", run.Reason, bug.Expect.Reason)
	}
	checkLedger(t, g, bug, run)
	checkClient(t, g, bug, run, resp, body, bodyErr)
}

func clocksOf(l fakellm.Limits) provider.Clocks {
	return provider.Clocks{
		Headers: l.Headers, FirstContent: l.FirstContent, ByteIdle: l.ByteIdle,
		ContentGap: l.ContentGap, FinishGrace: l.FinishGrace, Total: l.Total,
	}
}

func routesOf(t *testing.T, bug fakellm.Bug, fake string) map[string]provider.Route {
	clocks := clocksOf(bug.Limits)
	primary := provider.Route{Name: "primary", BaseURL: rig.Parse(t, fake+"/primary"), Clocks: clocks, NoRetry: !bug.Retry}
	fallback := provider.Route{Name: "fallback", BaseURL: rig.Parse(t, fake+"/fallback"), Clocks: clocks}
	if len(bug.Fallback) > 0 {
		primary.Fallbacks = []provider.Fallback{{Route: &fallback, Models: map[string]string{"m": "m2"}, Tools: true, Schema: true, OwnQuota: true}}
	}
	return map[string]provider.Route{"primary": primary, "fallback": fallback}
}

// readAs reads the answer as the script's client does.
func readAs(c fakellm.Client, resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	if c.Behaviour == "disconnect_after_bytes" {
		b := make([]byte, c.Bytes)
		n, err := io.ReadFull(resp.Body, b)
		return b[:n], err
	}
	return io.ReadAll(resp.Body)
}

// checkLedger holds the ledger against the script and against what the provider has counted.
func checkLedger(t *testing.T, g *rig.Rig, bug fakellm.Bug, run buffer.Run) {
	t.Helper()
	if len(run.Attempts) != len(bug.Expect.Attempts) {
		t.Errorf("%d attempts, want %d: %+v", len(run.Attempts), len(bug.Expect.Attempts), run.Attempts)
		return
	}
	if n := g.Fake.Count(""); n != len(run.Attempts) {
		t.Errorf("the provider counted %d requests, the ledger %d", n, len(run.Attempts))
	}
	for i, want := range bug.Expect.Attempts {
		got := run.Attempts[i]
		if got.Route != want.Route || string(got.Class) != want.Class || string(got.Action) != want.Action || string(got.Billed) != want.Billed {
			t.Errorf("attempt %d: %s %s %s billed=%s (%s), want %s %s %s billed=%s", i+1,
				got.Route, got.Class, got.Action, got.Billed, got.Why, want.Route, want.Class, want.Action, want.Billed)
		}
	}
	if gap := time.Duration(bug.Expect.MinGapMS) * time.Millisecond; gap > 0 {
		requests := g.Fake.Requests()
		if between := requests[1].At.Sub(requests[0].At); between < gap {
			t.Errorf("%s between the sends, want at least %s", between, gap)
		}
	}
	for name, want := range bug.Expect.Ledger {
		if got := figure(run.Usage, name); got != want {
			t.Errorf("usage %s is %d, want %v", name, got, want)
		}
	}
}

func figure(u *provider.Usage, name string) int64 {
	switch {
	case u == nil:
		return -1
	case name == "output_tokens":
		return u.OutputTokens
	case name == "input_tokens":
		return u.InputTokens
	}
	return u.Total()
}

// checkClient holds what the client saw against the run's state and its stored bytes.
func checkClient(t *testing.T, g *rig.Rig, bug fakellm.Bug, run buffer.Run, resp *http.Response, body []byte, err error) {
	t.Helper()
	stored := g.Do("GET", "/runs/"+run.ID.String()+"/resume", "")
	if bug.Client.Behaviour != "read_all" {
		if !bytes.HasPrefix(stored.Body, body) {
			t.Errorf("the client that left had read %q, stored is %q", body, stored.Body)
		}
		return
	}
	if run.State != buffer.Failed {
		checkBytes(t, bug, run, stored.Body)
	}
	switch run.State {
	case buffer.Completed:
		if err != nil || !bytes.Equal(body, stored.Body) {
			t.Errorf("a completed answer: %v, %q, stored %q", err, body, stored.Body)
		}
	case buffer.Interrupted:
		if !bytes.HasPrefix(body, stored.Body) {
			t.Errorf("an interrupted answer %q does not begin with what is stored, %q", body, stored.Body)
		}
		own := run.Reason == buffer.ProviderError
		if (err == nil) != own {
			t.Errorf("an interrupted answer (%s) ended with %v", run.Reason, err)
		}
		silent := own || !hasErrorEvent(resp)
		if told := bytes.TrimPrefix(body, stored.Body); silent != (len(told) == 0) {
			t.Errorf("told %q beyond the provider's bytes, reason %s", told, run.Reason)
		}
	case buffer.Failed:
		if resp.StatusCode < 400 || err != nil {
			t.Errorf("a failed answer: status %d, %v", resp.StatusCode, err)
		}
		if status := statusIn(bug.Expect.ClientSees); status != 0 && resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
	}
	for _, must := range bug.Expect.MustNot {
		if name, value, ok := strings.Cut(must, ": "); ok && resp.Header.Get(name) == value {
			t.Errorf("the answer has %s", must)
		}
	}
	if run.State != buffer.Failed && strings.Count(string(body), `"role":"assistant"`) > 1 && bug.Protocol == "openai_chat" {
		t.Error("the role came twice: an attempt before the content can be seen")
	}
}

// hasErrorEvent reports whether an answer's framing has an event that tells of an interruption. Where it has
// none, the abort says it alone (docs/protocol.md, section 3).
func hasErrorEvent(resp *http.Response) bool {
	switch frame.Detect(resp.Header.Get("Content-Type"), true) {
	case frame.SSE, frame.NDJSON, frame.AWS:
		return true
	}
	return false
}

// checkBytes holds what is stored against what the script of the last attempt wrote: a beginning of it, and
// all of it where the answer ended properly and nothing but its end has ended the reading.
func checkBytes(t *testing.T, bug fakellm.Bug, run buffer.Run, stored []byte) {
	t.Helper()
	last := run.Attempts[len(run.Attempts)-1]
	answers, n := bug.Primary, -1
	if last.Route == "fallback" {
		answers = bug.Fallback
	}
	for _, a := range run.Attempts {
		if a.Route == last.Route {
			n++
		}
	}
	written, whole, ok := scripted(answers[min(n, len(answers)-1)])
	if !ok {
		return
	}
	if !bytes.HasPrefix(written, stored) || whole && run.State == buffer.Completed && len(written) != len(stored) {
		t.Errorf("stored are %d bytes %.300q, the provider wrote %d bytes %.300q", len(stored), stored, len(written), written)
	}
}

// scripted is the body that an answer's ops write, and whether it ends properly and without a wait. It is not
// ok where the body cannot be told from the ops alone.
func scripted(ops []fakellm.Op) (body []byte, whole, ok bool) {
	for _, op := range ops {
		switch op.Kind {
		case "json":
			return op.Data, true, true
		case "head":
			if op.Framing == "raw" || len(op.Headers["content-encoding"]) > 0 {
				return nil, false, false
			}
			ok = true
		case "data", "cut":
			if !ok {
				return nil, false, false
			}
			body = append(body, op.Data...)
		case "repeat":
			body = append(body, bytes.Repeat(op.Data, op.Count)...)
		case "hang":
			return body, false, ok
		case "end", "done":
			return body, true, ok
		}
	}
	return body, false, ok
}

// statusIn is the status that the script's prose names; 0 for none.
func statusIn(prose string) int {
	words := strings.Fields(prose)
	i := slices.Index(words, "HTTP")
	if i < 0 || i+1 >= len(words) {
		return 0
	}
	n, err := strconv.Atoi(words[i+1])
	if err != nil {
		return 0
	}
	return n
}
