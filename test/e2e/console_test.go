package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// The buffer keys of two callers, and the key of the operator.
const (
	annesKey  = "a key that is anne's own"
	bertsKey  = "a key that is bert's own"
	adminsKey = "a key that is the admin's"
)

// admin is an admin listener over the rig.
func admin(t *testing.T, g *rig.Rig, key string, hosts ...string) string {
	t.Helper()
	metrics := api.NewMetrics()
	s := httptest.NewServer((&api.Admin{
		Server: g.Server, Key: key, Hosts: hosts, Metrics: metrics.Handler(g.Runs),
		Record: console.NewRecord(metrics.Gatherer(), zap.NewNop()), Base: g.URL,
	}).Handler())
	t.Cleanup(s.Close)
	return s.URL
}

// asked is a request that follows nothing, and its answer.
func asked(t *testing.T, method, target string, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestAdmin_KeyGuardsAllButHealth(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, adminsKey)
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/symbol", "/ui", "/ui/overview", "/ui/table", "/ui/panels", "/ui/keys", "/ui/runs/01JZZZZZZZ0000000000000009"} {
		for name, headers := range map[string][]string{
			"no key": nil, "another key": {"Authorization", "Bearer " + annesKey}, "a made-up session": {"Cookie", "spool_admin=" + strings.Repeat("A", 96)},
		} {
			if resp, text := asked(t, "GET", base+path, "", headers...); resp.StatusCode != 401 {
				t.Errorf("%s with %s: %d %s", path, name, resp.StatusCode, text)
			}
		}
		if resp, _ := asked(t, "GET", base+path, "", "Authorization", "Bearer "+adminsKey); resp.StatusCode == 401 {
			t.Errorf("%s with the key: 401", path)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if resp, _ := asked(t, "GET", base+path, ""); resp.StatusCode != 200 {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

func TestAdmin_KnowsItsOwnNamesOnly(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "", "console.internal")
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8788": 200, "localhost:8788": 200, "[::1]:8788": 200, "10.1.2.3": 200, "console.internal": 200, "Console.Internal:80": 200,
		"evil.example": 400, "evil.example:8788": 400, "localhost.evil.example": 400, "127.0.0.1.evil.example": 400, "x.console.internal": 400,
	} {
		for _, path := range []string{"/ui", "/metrics", "/healthz", "/debug/pprof/"} {
			if resp, text := asked(t, "GET", base+path, "", "Host", host); resp.StatusCode != want {
				t.Errorf("%s as %s: %d, want %d: %.80s", path, host, resp.StatusCode, want, text)
			}
		}
	}
}

func TestAdmin_ServesWhatTheOperatorNeeds(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	g.Chat()
	for path, want := range map[string]string{
		"/metrics": "spool_stored_chunks_total", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/ui": "completed", "/ui/keys": "<kbd>", "/ui/overview": "Overview", "/ui/static/console.css": ":root", "/ui/static/console.mjs": "import",
	} {
		if resp, text := asked(t, "GET", base+path, ""); resp.StatusCode != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d without %q", path, resp.StatusCode, want)
		}
	}
	for _, path := range []string{"/openai/v1/models", "/runs", "/ui/nothing", "/ui/static/nothing", "/ui/static/../page.go", "/ui/runs/x"} {
		if resp, _ := asked(t, "GET", base+path, ""); resp.StatusCode != 404 && resp.StatusCode != 301 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// hang keeps a run live.
func hang(g *rig.Rig) {
	g.Fake.Script("primary", append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(fakellm.Chat("a", "b")[:2], 0), fakellm.Hang(0))...))
}

func TestConsole_PostsComeFromItsOwnPages(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	hang(g)
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	id := resp.Header.Get("X-Buffer-Run-Id")
	resp.Body.Close()
	for name, headers := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"a sibling":      {"Sec-Fetch-Site", "same-site"},
		"another origin": {"Origin", "https://evil.example"},
		"no origin":      {"Origin", "null"},
		"another port":   {"Origin", "http://127.0.0.1:1"},
	} {
		for _, path := range []string{"/ui/runs/" + id + "/cancel", "/ui/runs/" + id + "/ack", "/ui/sign-out", "/ui/sign-in"} {
			if resp, _ := asked(t, "POST", base+path, "", headers...); resp.StatusCode != 403 {
				t.Errorf("%s from %s: %d, want 403", path, name, resp.StatusCode)
			}
		}
	}
	if run := g.Await(id, buffer.Streaming, buffer.Cancelled); run.State != buffer.Streaming {
		t.Fatalf("the run is %s", run.State)
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} { // no other method does anything
		asked(t, method, base+"/ui/runs/"+id+"/cancel", "")
	}
	if run := g.Await(id, buffer.Streaming, buffer.Cancelled); run.State != buffer.Streaming {
		t.Fatalf("the run is %s", run.State)
	}
	resp, _ = asked(t, "POST", base+"/ui/runs/"+id+"/cancel", "", "Origin", base)
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/ui/runs/"+id {
		t.Errorf("own page: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	g.Await(id, buffer.Cancelled)
}

func TestConsole_PagesLoadNothingThatStandsInThem(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	id := g.Chat("X-Buffer-Tag", `a=<script>alert(1)</script>`, "X-Buffer-Operation", `"><img src=x onerror=alert(1)>`).RunID()
	for _, path := range []string{"/ui", "/ui/table", "/ui/runs/" + id, "/ui/runs/" + id + "/facts", "/ui/overview", "/ui/nothing", "/ui/static/console.css",
		"/ui?tag=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E&state=%3Cscript%3E&provider=%22onload%3D&caller=%3Cscript%3E&after=%3Cscript%3E"} {
		resp, text := asked(t, "GET", base+path, "")
		csp := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
		if strings.Contains(text, "<script>") || strings.Contains(text, "<img") || strings.Contains(text, "style=") || strings.Contains(text, ` on`+`load=`) {
			t.Errorf("%s has what it was told:\n%s", path, text)
		}
	}
}

func TestConsole_ETagSparesWhatHasNotChanged(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	id := g.Chat().RunID()
	for _, path := range []string{"/ui/table", "/ui/runs/" + id + "/facts"} {
		first, _ := asked(t, "GET", base+path, "")
		if again, text := asked(t, "GET", base+path, "", "If-None-Match", first.Header.Get("ETag")); again.StatusCode != 304 || text != "" {
			t.Errorf("%s again: %d %s", path, again.StatusCode, text)
		}
	}
	first, _ := asked(t, "GET", base+"/ui/table", "")
	g.Chat()
	if again, _ := asked(t, "GET", base+"/ui/table", "", "If-None-Match", first.Header.Get("ETag")); again.StatusCode != 200 {
		t.Errorf("after another run: %d", again.StatusCode)
	}
}

// signedIn is a browser with a session on the public listener.
func signedIn(t *testing.T, g *rig.Rig, key string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	resp, err := c.PostForm(g.URL+"/ui/sign-in", url.Values{"key": {key}, "to": {"/ui"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Request.URL.Path != "/ui" {
		t.Fatalf("sign-in: %d at %s", resp.StatusCode, resp.Request.URL)
	}
	return c
}

func TestConsole_CallerSeesOwnRunsOnly(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"anne": annesKey, "bert": bertsKey}})
	annes := g.Chat("Authorization", "", "X-Buffer-Key", annesKey).RunID()
	berts := g.Chat("Authorization", "", "X-Buffer-Key", bertsKey).RunID()
	c := signedIn(t, g, annesKey)
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := c.Get(g.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, path := range []string{"/ui", "/ui/table", "/ui?caller=bert", "/ui/table?caller=bert"} {
		if _, text := get(path); !strings.Contains(text, annes) || strings.Contains(text, berts) {
			t.Errorf("%s shows another's run, or not its own", path)
		}
	}
	for _, path := range []string{"", "/facts", "/live"} {
		if status, _ := get("/ui/runs/" + annes + path); status != 200 {
			t.Errorf("own run%s: %d", path, status)
		}
		one, told := get("/ui/runs/" + berts + path)
		other, same := get("/ui/runs/01JZZZZZZZ0000000000000009" + path)
		if one != 404 || other != 404 || told != same {
			t.Errorf("another's run%s: %d, an unknown one: %d", path, one, other)
		}
	}
	for _, path := range []string{"/ui/overview", "/ui/panels"} {
		if status, _ := get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, what := range []string{"cancel", "ack"} {
		resp, err := c.Post(g.URL+"/ui/runs/"+berts+"/"+what, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != 404 {
			t.Errorf("%s another's run: %d", what, resp.StatusCode)
		}
	}
	g.Await(berts, buffer.Completed)
}

func TestConsole_NeedsACredential(t *testing.T) {
	for name, keys := range map[string]map[string]string{"with keys": {"anne": annesKey}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Keys: keys})
			if keys == nil {
				g.Chat("Authorization", "") // anonymous
			}
			for _, headers := range [][]string{nil, {"X-Buffer-Key", "no key at all"}, {"Cookie", "spool_ui=AAAA"}, {"Cookie", "spool_ui=" + strings.Repeat("A", 96)}} {
				if resp, text := asked(t, "GET", g.URL+"/ui", "", headers...); resp.StatusCode != 401 || !strings.Contains(text, `type="password"`) {
					t.Errorf("with %v: %d", headers, resp.StatusCode)
				}
			}
			for _, key := range []string{"", "+"} {
				if resp, _ := asked(t, "POST", g.URL+"/ui/sign-in", "key="+key); resp.StatusCode != 401 || len(resp.Cookies()) > 0 {
					t.Errorf("sign-in with %q: %d", key, resp.StatusCode)
				}
			}
		})
	}
}

func TestConsole_SessionIsOfItsListenerAndItsKey(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"anne": annesKey}})
	base := admin(t, g, adminsKey)
	resp, _ := asked(t, "POST", g.URL+"/ui/sign-in", url.Values{"key": {annesKey}, "to": {"//evil.example/ui"}}.Encode())
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/ui" || len(resp.Cookies()) != 1 {
		t.Fatalf("sign-in: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/ui" || strings.Contains(cookie.Value, annesKey) {
		t.Errorf("cookie %s", cookie)
	}
	if resp, _ := asked(t, "GET", base+"/ui", "", "Cookie", "spool_admin="+cookie.Value); resp.StatusCode != 401 {
		t.Errorf("a caller's session on the admin listener: %d", resp.StatusCode)
	}
	if resp, _ := asked(t, "GET", g.URL+"/runs", "", "Cookie", "spool_ui="+cookie.Value); resp.StatusCode != 401 {
		t.Errorf("a session beyond the console: %d", resp.StatusCode)
	}
	without := rig.New(t, rig.Options{Keys: map[string]string{"bert": bertsKey}}) // the same secret, anne's key is gone
	if resp, _ := asked(t, "GET", without.URL+"/ui", "", "Cookie", "spool_ui="+cookie.Value); resp.StatusCode != 401 {
		t.Errorf("a session of a key that is gone: %d", resp.StatusCode)
	}
}

func TestConsole_RunTokenReadsItsRun(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("alpha ", "omega"), 0)...))
	a := g.Chat("X-Buffer-Mint-Token", "1m")
	token := "?token=" + url.QueryEscape(a.Header.Get("X-Buffer-Token"))
	other := g.Chat().RunID()
	if resp, text := asked(t, "GET", g.URL+"/ui/runs/"+a.RunID()+token, ""); resp.StatusCode != 200 || !strings.Contains(text, "alpha omega") || strings.Contains(text, "Release") {
		t.Errorf("own run: %d\n%s", resp.StatusCode, text)
	}
	if resp, _ := asked(t, "GET", g.URL+"/ui"+token, ""); resp.StatusCode != 303 || !strings.HasPrefix(resp.Header.Get("Location"), "/ui/runs/"+a.RunID()) {
		t.Errorf("the runs: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	for _, path := range []string{"/ui/runs/" + other, "/ui/table", "/ui/overview"} {
		if resp, _ := asked(t, "GET", g.URL+path+token, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, what := range []string{"cancel", "ack"} {
		if resp, _ := asked(t, "POST", g.URL+"/ui/runs/"+a.RunID()+"/"+what+token, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d", what, resp.StatusCode)
		}
	}
	if resp, _ := asked(t, "GET", g.URL+"/ui/runs/"+a.RunID()+"?token=srt_x", ""); resp.StatusCode != 401 {
		t.Errorf("a bad token: %d", resp.StatusCode)
	}
}

// A token may begin in mid-answer: nothing before that is told, whatever the page asks for.
func TestConsole_RunTokenReadsFromItsPosition(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("alpha ", "omega"), 0)...))
	id := g.Chat().RunID()
	minted := g.Do("POST", "/runs/"+id+"/token", `{"from":2}`)
	token := strings.Split(strings.SplitAfter(string(minted.Body), `"token":"`)[1], `"`)[0]
	for _, path := range []string{"?from=0", "/live?from=0", "/live?from=1"} {
		resp, text := asked(t, "GET", g.URL+"/ui/runs/"+id+path+"&token="+token, "", "Last-Event-ID", "0")
		if resp.StatusCode != 200 || strings.Contains(text, "alpha") || !strings.Contains(text, "omega") {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, text)
		}
	}
}

// A provider's page would have the session of the console's viewer: it gets an origin of its own.
func TestConsole_ProvidersPagesAreInASandbox(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	for kind, want := range map[string]bool{"text/html": true, "Text/HTML; charset=utf-8": true, "image/svg+xml": true, "": true, "unknown/unknown": true, "application/json": false, "text/event-stream": false} {
		answer := fakellm.JSON(200, "<script>x</script>")
		answer.Headers = map[string][]string{"Content-Type": {kind}, "Content-Security-Policy": {"default-src *"}}
		g.Fake.Script("primary", []fakellm.Op{answer})
		for _, a := range []rig.Answer{g.Do("GET", "/openai/v1/models", ""), g.Do("POST", "/generic/anything", "{}")} {
			boxed := strings.Contains(strings.Join(a.Header.Values("Content-Security-Policy"), ","), "sandbox")
			if kind == "" && a.Header.Get("Content-Type") == "application/json" {
				continue // the buffer has named what the provider has not
			}
			if boxed != want {
				t.Errorf("%q: in a sandbox %t, want %t", kind, boxed, want)
			}
		}
	}
}

func TestConsole_TellsWhereReadersAre(t *testing.T) {
	g := rig.New(t, rig.Options{})
	base := admin(t, g, "")
	hang(g)
	caller := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	defer caller.Body.Close()
	id := caller.Header.Get("X-Buffer-Run-Id")
	late := g.Open("GET", "/runs/"+id+"/resume?from=1", "")
	defer late.Body.Close()
	events := fakellm.Chat("a", "b")
	if _, err := io.ReadFull(caller.Body, make([]byte, len(events[0])+len(events[1]))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(late.Body, make([]byte, len(events[1]))); err != nil {
		t.Fatal(err)
	}
	_, text := asked(t, "GET", base+"/ui/runs/"+id+"/facts", "")
	if n := strings.Count(text, "at 2 of 2"); n != 2 {
		t.Errorf("%d readers at the head, want 2:\n%s", n, text)
	}
}

// Signing in leads to the console's own pages, whatever the form says.
func TestConsole_SignInStaysInTheConsole(t *testing.T) {
	g := rig.New(t, rig.Options{Keys: map[string]string{"anne": annesKey}})
	for to, want := range map[string]string{
		"/ui/overview": "/ui/overview", "/ui/runs/x?from=1": "/ui/runs/x?from=1", "": "/ui",
		"//evil.example/ui": "/ui", "https://evil.example/ui": "/ui", "/runs": "/ui",
		"/ui/runs/../../runs": "/ui", "/ui/runs/..//evil.example": "/ui", "/ui/runs/%2e%2e/%2e%2e/runs": "/ui",
	} {
		resp, _ := asked(t, "POST", g.URL+"/ui/sign-in", url.Values{"key": {annesKey}, "to": {to}}.Encode())
		if got := resp.Header.Get("Location"); resp.StatusCode != 303 || got != want {
			t.Errorf("to %q: %d to %q, want %q", to, resp.StatusCode, got, want)
		}
	}
}
