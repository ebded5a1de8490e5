package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

const geminiPath = "/gemini/v1beta/models/g:streamGenerateContent?alt=sse"

// carriers are the headers that carry a credential, with the value for a secret.
func carriers(secret string) map[string][]string {
	return map[string][]string{
		"bearer":         {"Authorization", "Bearer " + secret},
		"lower case":     {"Authorization", "bearer " + secret},
		"x-api-key":      {"Authorization", "", "x-api-key", secret},
		"x-goog-api-key": {"Authorization", "", "x-goog-api-key", secret},
		"api-key":        {"Authorization", "", "api-key", secret},
	}
}

func TestCaller_OneSecretIsOneCallerInAnyHeader(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const secret = "sk-one"
	want := g.Chat(append(carriers(secret)["bearer"], "Idempotency-Key", "a")...)
	inQuery := g.Do("POST", geminiPath+"&key="+secret, `{"contents":[]}`, "Authorization", "", "Idempotency-Key", "q")
	for name, headers := range carriers(secret) {
		if a := g.Chat(append(headers, "Idempotency-Key", "a")...); a.RunID() != want.RunID() || a.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the key names run %s, want %s", name, a.RunID(), want.RunID())
		}
		for _, id := range []string{want.RunID(), inQuery.RunID()} {
			if a := g.Do("GET", "/runs/"+id, "", headers...); a.Status != 200 {
				t.Errorf("%s: status of run %s: %d", name, id, a.Status)
			}
		}
		if a := g.Do("GET", "/resume?key=a", "", headers...); a.Status != 200 || a.RunID() != want.RunID() {
			t.Errorf("%s: resume by key: %d, run %s", name, a.Status, a.RunID())
		}
	}
	for name, headers := range carriers("sk-two") {
		if a := g.Do("GET", "/runs/"+want.RunID(), "", headers...); a.Status != 404 {
			t.Errorf("%s with another secret: %d, want 404", name, a.Status)
		}
	}
}

func TestCaller_WithoutCredentialIsAnonymous(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat("Authorization", "", "Idempotency-Key", "a").RunID()
	g.Await(id, buffer.Completed)
	for _, path := range []string{"/runs/" + id + "/resume", "/resume?key=a", "/resume?run=" + id} {
		if a := g.Do("GET", path, "", "Authorization", ""); a.Status != 200 || a.RunID() != id {
			t.Errorf("%s: %d, run %s", path, a.Status, a.RunID())
		}
		if a := g.Do("GET", path, ""); a.Status != 404 {
			t.Errorf("%s with a credential: %d, want 404", path, a.Status)
		}
	}
}

// What is another's and what does not exist are one answer, to the byte; the run does not notice.
func TestCaller_AnothersRunIsAsGoodAsNone(t *testing.T) {
	keys := map[string]string{"mine": "buffer-key-of-mine", "other": "buffer-key-of-other"}
	for _, row := range []struct {
		name        string
		keys        map[string]string
		mine, other string
	}{
		{"provider credentials", nil, "Bearer k", "Bearer sk-two"},
		{"buffer keys", keys, "Bearer " + keys["mine"], "Bearer " + keys["other"]},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Keys: row.keys})
			gate := make(chan struct{})
			defer close(gate)
			ops := append(fakellm.Play(fakellm.Chat("a ")[:2], 0), fakellm.Gate(gate))
			g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
			resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "Authorization", row.mine, "Idempotency-Key", "a")
			resp.Body.Close()
			id := resp.Header.Get("X-Buffer-Run-Id")
			const unknown = "01JZZZZZZZ0000000000000009"
			for _, call := range []string{
				"GET /runs/%s", "GET /runs/%s/resume", "GET /resume?run=%s", "POST /runs/%s/cancel", "POST /runs/%s/ack",
			} {
				method, path, _ := strings.Cut(call, " ")
				foreign := g.Do(method, fmt.Sprintf(path, id), "", "Authorization", row.other)
				none := g.Do(method, fmt.Sprintf(path, unknown), "", "Authorization", row.other)
				wantSameRefusal(t, call, foreign, none)
			}
			wantSameRefusal(t, "resume by key", g.Do("GET", "/resume?key=a", "", "Authorization", row.other),
				g.Do("GET", "/resume?key=none", "", "Authorization", row.other))
			if a := g.Do("GET", "/runs", "", "Authorization", row.other); a.Status != 200 || !bytes.Contains(a.Body, []byte(`"runs":[]`)) {
				t.Errorf("another's list: %d %s", a.Status, a.Body)
			}
			if a := g.Do("GET", "/runs/"+id, "", "Authorization", row.mine); !bytes.Contains(a.Body, []byte(`"state":"streaming"`)) {
				t.Errorf("the run noticed: %d %s", a.Status, a.Body)
			}
		})
	}
}

func wantSameRefusal(t *testing.T, what string, foreign, none rig.Answer) {
	t.Helper()
	for _, own := range []string{"Date", "X-Request-Id"} {
		foreign.Header.Del(own)
		none.Header.Del(own)
	}
	if foreign.Status != 404 || !bytes.Contains(foreign.Body, []byte(`"code":"not_found"`)) {
		t.Errorf("%s: another's run is %d %s, want 404 not_found", what, foreign.Status, foreign.Body)
	}
	if none.Status != foreign.Status || !bytes.Equal(none.Body, foreign.Body) || fmt.Sprint(none.Header) != fmt.Sprint(foreign.Header) {
		t.Errorf("%s: an unknown run is told from another's:\n%v %s\n%v %s", what, none.Header, none.Body, foreign.Header, foreign.Body)
	}
}

// A configured key has a name, and the name is the caller.
func TestCaller_KeysOfOneNameAreRotatedWithoutLosingRuns(t *testing.T) {
	dir := t.TempDir()
	var id string
	t.Run("old key", func(t *testing.T) {
		g := rig.New(t, rig.Options{Dir: dir, Keys: map[string]string{"agent": "the-old-buffer-key"}})
		id = g.Chat("Authorization", "Bearer the-old-buffer-key").RunID()
		g.Await(id, buffer.Completed)
	})
	t.Run("new key", func(t *testing.T) {
		g := rig.New(t, rig.Options{Dir: dir, Keys: map[string]string{"agent": "the-new-buffer-key"}})
		if a := g.Do("GET", "/runs/"+id, "", "Authorization", "Bearer the-new-buffer-key"); a.Status != 200 {
			t.Errorf("the new key: %d, want 200", a.Status)
		}
		if a := g.Do("GET", "/runs/"+id, "", "Authorization", "Bearer the-old-buffer-key"); a.Status != 401 {
			t.Errorf("the old key: %d, want 401", a.Status)
		}
	})
}

// calls are one call of each kind on each built-in provider, and where its dialect wants a key.
var calls = []struct{ name, method, path, keyIn string }{
	{"chat", "POST", "/openai/v1/chat/completions", "Authorization"},
	{"responses", "POST", "/openai/v1/responses", "Authorization"},
	{"models", "GET", "/openai/v1/models", "Authorization"},
	{"messages", "POST", "/anthropic/v1/messages", "X-Api-Key"},
	{"count_tokens", "POST", "/anthropic/v1/messages/count_tokens", "X-Api-Key"},
	{"anthropic models", "GET", "/anthropic/v1/models", "X-Api-Key"},
	{"gemini", "POST", geminiPath, "X-Goog-Api-Key"},
	{"countTokens", "POST", "/gemini/v1beta/models/g:countTokens", "X-Goog-Api-Key"},
	{"gemini models", "GET", "/gemini/v1beta/models", "X-Goog-Api-Key"},
	{"converse", "POST", "/bedrock/model/m/converse-stream", "Authorization"},
	{"ollama", "POST", "/ollama/api/chat", "Authorization"},
}

func TestCaller_BufferKeyNeverReachesAProvider(t *testing.T) {
	const key = "a-buffer-key-of-ours"
	g := rig.New(t, rig.Options{Keys: map[string]string{"agent": key}})
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + key},
		{"Authorization", "", "x-api-key", key},
		{"Authorization", "", "x-goog-api-key", key},
		{"Authorization", "", "X-Buffer-Key", key},
		{"Authorization", "Bearer " + key, "x-api-key", key}, // an SDK that was given it twice
		{"Authorization", "Bearer " + key, "X-Buffer-Key", key + "x"},
	} {
		for _, call := range calls {
			if a := g.Do(call.method, call.path, `{"model":"m","stream":true}`, headers...); a.Status == 401 && !strings.Contains(fmt.Sprint(headers), key+"x") {
				t.Errorf("%s with %v: the key is not taken", call.name, headers)
			}
		}
	}
	for _, r := range g.Fake.Requests() {
		if all := fmt.Sprint(r.Target, r.Header, string(r.Body)); strings.Contains(all, key) {
			t.Errorf("%s %s brought the buffer key to the provider: %v", r.Method, r.Target, r.Header)
		}
	}
	if n, want := g.Fake.Count(""), 5*len(calls); n != want {
		t.Errorf("%d provider calls, want %d", n, want)
	}
}

func TestCaller_ProviderKeyGoesWhereTheDialectWantsIt(t *testing.T) {
	const key = "a-buffer-key-of-ours"
	configured := func(fake string) map[string]provider.Route {
		routes := map[string]provider.Route{}
		for _, name := range []string{"openai", "anthropic", "gemini", "ollama", "bedrock"} {
			routes[name] = provider.Route{Name: name, BaseURL: rig.Parse(t, fake+"/primary"), Key: "sk-of-the-provider"}
		}
		return routes
	}
	for _, row := range []struct {
		name    string
		options rig.Options
		headers []string
	}{
		{"sent beside the buffer key", rig.Options{Keys: map[string]string{"agent": key}}, []string{"Authorization", "Bearer " + key, "X-Provider-Key", "sk-of-the-provider"}},
		{"sent beside X-Buffer-Key", rig.Options{Keys: map[string]string{"agent": key}}, []string{"Authorization", "", "X-Buffer-Key", key, "X-Provider-Key", "sk-of-the-provider"}},
		{"configured", rig.Options{Keys: map[string]string{"agent": key}, Routes: configured}, []string{"Authorization", "", "x-api-key", key}},
		{"configured, without buffer keys", rig.Options{Routes: configured}, []string{"Authorization", "Bearer of-the-caller"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, row.options)
			for _, call := range calls {
				g.Do(call.method, call.path, `{"model":"m","stream":true}`, row.headers...)
				sent := last(t, g)
				want := "sk-of-the-provider"
				if call.keyIn == "Authorization" {
					want = "Bearer " + want
				}
				if got := sent.Header.Get(call.keyIn); got != want {
					t.Errorf("%s: %s is %q, want %q", call.name, call.keyIn, got, want)
				}
				for _, other := range provider.CredentialHeaders {
					if other != call.keyIn && sent.Header.Get(other) != "" {
						t.Errorf("%s: %s went along: %q", call.name, other, sent.Header.Get(other))
					}
				}
				if sent.Header.Get("X-Provider-Key") != "" {
					t.Errorf("%s: X-Provider-Key was forwarded", call.name)
				}
			}
		})
	}
}

func TestCaller_ConfiguredKeyTakesThePlaceOfTheOneInTheQuery(t *testing.T) {
	g := rig.New(t, rig.Options{Routes: func(fake string) map[string]provider.Route {
		return map[string]provider.Route{"gemini": {Name: "gemini", BaseURL: rig.Parse(t, fake+"/primary"), Key: "sk-of-the-provider"}}
	}})
	g.Do("POST", geminiPath+"&key=of-the-caller", `{}`, "Authorization", "")
	if target := g.Fake.Requests()[0].Target; strings.Contains(target, "of-the-caller") {
		t.Errorf("the provider was asked for %s", target)
	}
}

func TestCaller_OtherCredentialsGoThroughBesideXBufferKey(t *testing.T) {
	const key = "a-buffer-key-of-ours"
	g := rig.New(t, rig.Options{Keys: map[string]string{"agent": key}})
	for _, call := range calls {
		g.Do(call.method, call.path, `{"model":"m","stream":true}`, "X-Buffer-Key", key,
			"Authorization", "Basic dTpw", "x-api-key", "x", "x-goog-api-key", "g", "api-key", "a")
		h := last(t, g).Header
		if got := fmt.Sprint(h["Authorization"], h["X-Api-Key"], h["X-Goog-Api-Key"], h["Api-Key"], h["X-Buffer-Key"]); got != "[Basic dTpw] [x] [g] [a] []" {
			t.Errorf("%s: the provider saw %s", call.name, got)
		}
	}
}

func TestCaller_WithoutItsKeyIsUnauthorized(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"agent": "a-buffer-key-of-ours"}})
	shapes := map[string]string{
		"openai":    `{"error":{"message":"spool: `,
		"anthropic": `{"type":"error","error":{"type":"authentication_error","message":"spool: `,
		"gemini":    `{"error":{"code":401,"message":"spool: `,
		"bedrock":   `{"__type":"AccessDeniedException","message":"unauthorized: `,
		"ollama":    `{"error":"unauthorized: spool: `,
	}
	for _, headers := range [][]string{
		{"Authorization", ""},
		{"Authorization", "Bearer unknown"},
		{"Authorization", "a-buffer-key-of-ours-and-more"},
		{"Authorization", "", "x-api-key", "unknown"},
		{"Authorization", "", "X-Buffer-Key", "unknown"},
	} {
		for _, call := range calls {
			a := g.Do(call.method, call.path, `{"model":"m","stream":true}`, headers...)
			name, _, _ := strings.Cut(call.path[1:], "/")
			if a.Status != 401 || !strings.HasPrefix(string(a.Body), shapes[name]) || !bytes.Contains(a.Body, []byte("unauthorized")) {
				t.Errorf("%s with %v: %d %s, want 401 as %s", call.name, headers, a.Status, a.Body, shapes[name])
			}
			if name == "gemini" && !bytes.Contains(a.Body, []byte(`"status":"UNAUTHENTICATED"`)) {
				t.Errorf("%s: %s", call.name, a.Body)
			}
		}
		for _, path := range []string{"/runs", "/runs/01JZZZZZZZ0000000000000009", "/runs/01JZZZZZZZ0000000000000009/resume", "/resume?key=a"} {
			a := g.Do("GET", path, "", headers...)
			if a.Status != 401 || a.Header.Get("Content-Type") != "application/problem+json" || !bytes.Contains(a.Body, []byte(`"code":"unauthorized"`)) {
				t.Errorf("%s with %v: %d %s %s", path, headers, a.Status, a.Header.Get("Content-Type"), a.Body)
			}
		}
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics"} {
		if a := g.Do("GET", open, "", "Authorization", ""); a.Status != 200 {
			t.Errorf("%s without a key: %d", open, a.Status)
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
}

func TestCaller_SecretsAreNeitherStoredNorLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	g := rig.New(t, rig.Options{Log: zap.New(core)})
	const secret = "sk-that-nobody-may-see"
	headers := []string{"Authorization", "", "X-Provider-Key", secret + "-2"}
	a := g.Do("POST", geminiPath+"&key="+secret+"&x=1", `{"contents":[{"parts":[{"text":"a prompt"}]}]}`, "Authorization", "", "Idempotency-Key", "a")
	g.Do("POST", geminiPath+"&key="+secret, `{}`, "Authorization", "", "X-Buffer-TTL", "never")
	g.Do("GET", "/gemini/v1beta/models?key="+secret, "", headers...)
	g.Chat("Authorization", "Bearer "+secret)
	run := g.Await(a.RunID(), buffer.Completed)
	if !strings.HasSuffix(run.Path, "g:streamGenerateContent?alt=sse&x=1") {
		t.Errorf("the path is stored as %s", run.Path)
	}
	list := g.Do("GET", "/runs", "", "Authorization", "Bearer "+secret)
	if !bytes.Contains(list.Body, []byte(a.RunID())) {
		t.Fatalf("the run is not listed: %s", list.Body)
	}
	g.Fake.Close()
	g.Do("POST", geminiPath+"&key="+secret, `{}`, "Authorization", "", "X-Buffer-Budget", "attempts=1")
	g.Do("GET", "/gemini/v1beta/models?key="+secret, "", headers...)

	seen := [][]byte{list.Body}
	for run, err := range g.Store.List(t.Context(), buffer.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if run, err = g.Store.Get(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Append(nil, run))
	}
	for _, entry := range logs.All() {
		seen = append(seen, fmt.Append(nil, entry.Message, entry.ContextMap()))
	}
	for _, text := range seen {
		for _, hidden := range []string{secret, "a prompt", fakellm.DefaultText[:20]} {
			if bytes.Contains(text, []byte(hidden)) {
				t.Errorf("%q is in %s", hidden, text)
			}
		}
	}
	if logs.Len() == 0 {
		t.Error("nothing was logged")
	}
}

func TestCaller_CloudflareRouteTakesTheRunIDAsCredential(t *testing.T) {
	g := rig.New(t, rig.Options{})
	id := g.Chat().RunID()
	path := "/ai-gateway/gateways/any/run/" + id + "/resume?from=0"
	if a := g.Do("GET", path, "", "Authorization", ""); a.Status != http.StatusOK || len(a.Body) == 0 {
		t.Errorf("without a credential: %d %s", a.Status, a.Body)
	}
	if a := g.Do("GET", path, "", "Authorization", "Bearer another"); a.Status != 404 || string(a.Body) != `{"error":"Request not found"}` {
		t.Errorf("with another's: %d %s", a.Status, a.Body)
	}
}
