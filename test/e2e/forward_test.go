package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// last is the newest request that the provider got.
func last(t *testing.T, g *rig.Rig) fakellm.Request {
	t.Helper()
	all := g.Fake.Requests()
	if len(all) == 0 {
		t.Fatal("nothing was sent to the provider")
	}
	return all[len(all)-1]
}

func TestForward_RequestArrivesAsItWasMade(t *testing.T) {
	g := rig.New(t, rig.Options{})
	body := "{ \"model\" : \"m\",\"stream\":true,\n\t\"n\":1.0e+2, \"n\":9007199254740993,\"s\":\"\\u00e9é\\/\U0001F600\" }\r\n"
	for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages", "/openai/v1/embeddings"} {
		const query = "?api-version=2024-10-01&x=%20y+z&empty=&b=1&b=2&%C3%A9=%2F"
		a := g.Do("POST", path+query, body,
			"anthropic-version", "2023-06-01", "anthropic-beta", "a,b", "openai-beta", "responses=v1", "OpenAI-Organization", "org",
			"x-goog-api-client", "gl-python/3", "X-Stainless-Lang", "python", "X-Stainless-Retry-Count", "0", "traceparent", "00-a-b-01",
			"User-Agent", "OpenAI/Python 2.0", "Accept", "application/json", "Accept-Encoding", "gzip, br",
			"Idempotency-Key", "key"+path, "X-Buffer-Tag", "a=b", "X-Buffer-TTL", "5m", "X-Buffer-Whatever", "1",
			"Connection", "x-hop, keep-alive", "X-Hop", "1", "Keep-Alive", "timeout=5", "TE", "trailers",
			"Proxy-Authorization", "Basic eA==", "Cookie", "session=1", "X-Forwarded-For", "10.0.0.1", "Forwarded", "for=10.0.0.1")
		if a.Status == 400 {
			t.Fatalf("%s: %s", path, a.Body)
		}
		sent := last(t, g)
		_, rest, _ := strings.Cut(path[1:], "/")
		if sent.Target != "/primary/"+rest+query || sent.Method != "POST" {
			t.Errorf("%s: %s %s was asked for", path, sent.Method, sent.Target)
		}
		if string(sent.Body) != body {
			t.Errorf("%s: the body arrived as %q", path, sent.Body)
		}
		want := map[string]string{
			"Authorization": "Bearer k", "Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "a,b",
			"Openai-Beta": "responses=v1", "Openai-Organization": "org", "X-Goog-Api-Client": "gl-python/3", "X-Stainless-Lang": "python",
			"X-Stainless-Retry-Count": "0", "Traceparent": "00-a-b-01", "User-Agent": "OpenAI/Python 2.0", "Accept": "application/json",
			"Accept-Encoding": "identity", "Content-Length": fmt.Sprint(len(body)), "Host": g.Fake.Addr(),
		}
		if strings.HasSuffix(path, "/embeddings") { // passes through: nothing of the answer is looked at
			want["Accept-Encoding"] = "gzip, br"
		}
		for name := range sent.Header {
			if got := strings.Join(sent.Header[name], "|"); got != want[name] {
				t.Errorf("%s: %s arrived as %q, want %q", path, name, got, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%s: did not arrive: %v", path, want)
		}
	}
}

func TestForward_CallerWithoutUserAgentStaysWithout(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/models"} {
		req := g.Request("POST", path, rig.ChatBody)
		req.Header["User-Agent"] = nil
		resp, err := g.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if v, ok := last(t, g).Header["User-Agent"]; ok {
			t.Errorf("%s: the provider saw User-Agent %q", path, v)
		}
	}
}

func TestForward_BodyWithoutLength(t *testing.T) {
	g := rig.New(t, rig.Options{})
	req := g.Request("POST", "/openai/v1/chat/completions", "")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(rig.ChatBody)), -1
	resp, err := g.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sent := last(t, g); resp.StatusCode != 200 || string(sent.Body) != rig.ChatBody || sent.Header.Get("Content-Length") == "" {
		t.Errorf("status %d, the provider got %q with %v", resp.StatusCode, sent.Body, sent.Header)
	}
}

// answer is an op that a Head cannot express.
func answer(status int, framing string, headers map[string][]string) fakellm.Op {
	return fakellm.Op{Kind: "head", Status: status, Framing: framing, Headers: headers}
}

func TestForward_OtherCallsPassThrough(t *testing.T) {
	g := rig.New(t, rig.Options{})
	var upload bytes.Buffer
	form := multipart.NewWriter(&upload)
	part, err := form.CreateFormFile("file", "a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(bytes.Repeat([]byte{0, 0xff, '\r', '\n'}, 64<<10)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path, body, contentType string
		status                          int
	}{
		{"GET", "/openai/v1/models?limit=2", "", "", 200},
		{"HEAD", "/openai/v1/models", "", "", 200},
		{"DELETE", "/openai/v1/files/file_1", "", "", 200},
		{"POST", "/openai/v1/files", upload.String(), form.FormDataContentType(), 201},
		{"PUT", "/openai/v1/things/1", `{"a":1}`, "application/json", 204},
		{"PATCH", "/openai/v1/things/1", `{"a":1}`, "application/json", 409},
		{"OPTIONS", "/openai/v1/things/1", "", "", 405},
		{"POST", "/openai/v1/embeddings", `{"input":"x"}`, "application/json", 429},
		{"POST", "/anthropic/v1/messages/count_tokens", `{"model":"m"}`, "application/json", 200},
		{"POST", "/anthropic/v1/messages/batches", `{"requests":[]}`, "application/json", 200},
		{"POST", "/gemini/v1beta/models/g:countTokens", `{}`, "application/json", 200},
		{"POST", "/ollama/api/embed", `{}`, "application/json", 500},
		{"GET", "/openai/v1/chat/completions", "", "", 404},
		{"GET", "/anthropic/v1/messages", "", "", 405},
	} {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			const text = `{"a":"provider's own"}`
			headers := map[string][]string{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Set-Cookie": {"a=1", "b=2"}, "Retry-After": {"7"}}
			head, body := answer(row.status, "length", headers), fakellm.Data(text)
			if row.method == "HEAD" {
				headers["Content-Length"] = []string{fmt.Sprint(len(text))}
				head, body = answer(row.status, "raw", headers), fakellm.Done()
			}
			if row.status == 204 {
				body = fakellm.Done()
			}
			g.Fake.Script("primary", []fakellm.Op{head, body})
			a := g.Do(row.method, row.path, row.body, "Content-Type", row.contentType)
			sent := last(t, g)
			_, rest, _ := strings.Cut(row.path[1:], "/")
			if sent.Method != row.method || sent.Target != "/primary/"+rest || string(sent.Body) != row.body || sent.Header.Get("Content-Type") != row.contentType {
				t.Errorf("the provider got %s %s, %d bytes, %v", sent.Method, sent.Target, len(sent.Body), sent.Header)
			}
			want := text
			if row.method == "HEAD" || row.status == 204 {
				want = ""
			}
			if a.Status != row.status || string(a.Body) != want || a.Err != nil {
				t.Errorf("%d %q %v, want %d %q", a.Status, a.Body, a.Err, row.status, want)
			}
			for name, values := range headers {
				if !slices.Equal(a.Header.Values(name), values) {
					t.Errorf("%s is %q, want %q", name, a.Header.Values(name), values)
				}
			}
			if a.RunID() != "" {
				t.Error("it became a run")
			}
		})
	}
	wantNoRuns(t, g)
}

func wantNoRuns(t *testing.T, g *rig.Rig) {
	t.Helper()
	for run, err := range g.Store.List(t.Context(), buffer.Filter{}) {
		t.Errorf("there is a run %s %s: %v", run.ID, run.Path, err)
	}
}

func TestForward_RedirectsAreNotFollowed(t *testing.T) {
	g := rig.New(t, rig.Options{})
	g.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	elsewhere := g.Fake.URL + "/elsewhere"
	g.Fake.Script("primary", []fakellm.Op{answer(307, "length", map[string][]string{"Location": {elsewhere}})})
	if a := g.Do("GET", "/openai/v1/models", ""); a.Status != 307 || a.Header.Get("Location") != elsewhere {
		t.Errorf("a pass-through: %d, Location %s; want the provider's", a.Status, a.Header.Get("Location"))
	}
	if a := g.Chat("X-Buffer-Budget", "attempts=1"); a.Status != 502 || a.Header.Get("Location") != "/runs/"+a.RunID() {
		t.Errorf("a run: %d, Location %s; want 502, its own", a.Status, a.Header.Get("Location"))
	}
	if n := g.Fake.Count("elsewhere"); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

func TestForward_SignedRequestsAreToldOfBedrockKeys(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const sig = "AWS4-HMAC-SHA256 Credential=AKIA/20250101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0"
	for _, row := range []struct{ path, authorization string }{
		{"/bedrock/model/m/converse-stream", sig},
		{"/bedrock/model/m/invoke", sig},
		{"/bedrock/guardrail/g", sig},
		{"/bedrock/model/m/converse?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0", ""},
	} {
		a := g.Do("POST", row.path, `{}`, "Authorization", row.authorization)
		if a.Status != 400 || !bytes.Contains(a.Body, []byte("Bedrock API key")) || !bytes.HasPrefix(a.Body, []byte(`{"__type":`)) {
			t.Errorf("%s: %d %s", row.path, a.Status, a.Body)
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
	wantNoRuns(t, g)
}

// raw makes a request with a target as it is written here, and gives the answer's status line and
// what follows.
func raw(t *testing.T, g *rig.Rig, method, target, body string) (status int, rest string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: spool\r\nAuthorization: Bearer k\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, target, len(body), body); err != nil {
		t.Fatal(err)
	}
	r := textproto.NewReader(bufio.NewReader(conn))
	line, err := r.ReadLine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	all, _ := io.ReadAll(r.R) // the body's end says nothing here
	return status, string(all)
}

func TestForward_NoPathLeavesTheBaseURL(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	for _, path := range []string{
		"/..", "/../secret", "/v1/../../secret", "/v1/..", "/v1/.", "/./v1", "/v1/%2e%2e/%2e%2e/secret", "/%2E%2E/secret", "/.%2e/secret",
		"/..%2f..%2fsecret", "/v1%2f..%2f..%2fsecret", "/v1/..%5c..%5csecret", `/v1/..\..\secret`, `/..\secret`, "/v1/%2e%2e%2fsecret",
		"/%2f..%2f..%2fsecret", "/v1/../../../chat/completions", "/..%2fchat/completions",
	} {
		for _, method := range []string{"GET", "POST"} {
			if status, rest := raw(t, g, method, "/openai"+path, "{}"); status != 400 || !strings.Contains(rest, "bad_request") {
				t.Errorf("%s %s: %d, want 400 bad_request", method, path, status)
			}
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("the provider was asked: %v", g.Fake.Requests()[0].Target)
	}
	wantNoRuns(t, g)
	for _, path := range []string{
		"//v1/models", "/v1//models", "/@elsewhere/v1", "/:80/v1", "/http://elsewhere/v1", "/%2f%2felsewhere/v1", "/v1/...", "/v1/..a/.b",
		"/v1/%252e%252e/%252e%252e/secret", "/v1/models%3fa=b", "/v1/models%23", "/v1/a%00b", "/v1/a;b=..;c", "/",
	} {
		status, _ := raw(t, g, "GET", "/openai"+path, "")
		if status == 400 {
			t.Errorf("%s is refused", path)
			continue
		}
		if sent := last(t, g); sent.Target != "/primary"+path || sent.Header.Get("Host") != g.Fake.Addr() {
			t.Errorf("%s arrived at %s as %s", path, sent.Header.Get("Host"), sent.Target)
		}
	}
}

func TestForward_EscapedSlashStaysInItsSegment(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	const path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123%3Ainference-profile%2Fus.anthropic.claude-v1%3A0/converse-stream"
	g.Fake.Script("primary", fakellm.Stream("application/vnd.amazon.eventstream", fakellm.Play(fakellm.Converse("a "), 0)...))
	if status, rest := raw(t, g, "POST", "/bedrock"+path, `{"messages":[]}`); status != 200 {
		t.Fatalf("%d %s", status, rest)
	}
	if sent := last(t, g); sent.Target != "/primary"+path {
		t.Errorf("it arrived as %s", sent.Target)
	}
	for run, err := range g.Store.List(t.Context(), buffer.Filter{}) {
		if err != nil || run.Model != "arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.claude-v1:0" {
			t.Errorf("model %q, %v", run.Model, err)
		}
	}
}

func TestForward_DoubledSlashIsNotRedirected(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	if status, _ := raw(t, g, "POST", "/openai//v1//chat/completions", rig.ChatBody); status != 200 {
		t.Errorf("status %d, want 200", status)
	}
	if sent := last(t, g); sent.Target != "/primary//v1//chat/completions" || sent.Method != "POST" {
		t.Errorf("%s %s was asked for", sent.Method, sent.Target)
	}
}

func TestForward_UnknownProviderIsNotFound(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	for _, target := range []string{"/nobody/v1/chat/completions", "/OpenAI/v1/models", "/%6fpenai/v1/models", "//openai/v1/models", "/openai", "/", "/runs/x/y/z", "/ui/", "/streams"} {
		if status, rest := raw(t, g, "POST", target, rig.ChatBody); status != 404 || !strings.Contains(rest, "application/problem+json") {
			t.Errorf("%s: %d %s", target, status, rest)
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
}

func TestForward_BodyOverTheLimitIsTooLarge(t *testing.T) {
	g := rig.New(t, rig.Options{Limits: api.Limits{Body: 1000}})
	body := `{"model":"m","stream":true,"x":"` + strings.Repeat("x", 1000) + `"}`
	for _, row := range []struct{ path, prefix string }{
		{"/openai/v1/chat/completions", `{"error":{"message":`}, {"/anthropic/v1/messages", `{"type":"error","error":{"type":"request_too_large"`},
	} {
		for _, length := range []int64{int64(len(body)), -1} {
			req := g.Request("POST", row.path, "")
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), length
			resp, err := g.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 413 || !bytes.HasPrefix(b, []byte(row.prefix)) || !bytes.Contains(b, []byte("too_large")) || err != nil {
				t.Errorf("%s, length %d: %d %s %v", row.path, length, resp.StatusCode, b, err)
			}
		}
	}
	if a := g.Do("POST", "/openai/v1/chat/completions", body[:32]+strings.Repeat("x", 1000-34)+`"}`); a.Status != 200 {
		t.Errorf("a body at the limit: %d", a.Status)
	}
	if n := g.Fake.Count(""); n != 1 {
		t.Errorf("%d provider calls, want 1", n)
	}
}

func TestForward_AnswerKeepsTheProvidersHeaders(t *testing.T) {
	g := rig.New(t, rig.Options{})
	kept := map[string][]string{
		"Content-Type": {"text/event-stream; charset=utf-8"}, "X-Request-Id": {"req_1"}, "Openai-Processing-Ms": {"12"},
		"X-Ratelimit-Remaining-Requests": {"9"}, "X-Multi": {"a", "b"}, "Date": {"Mon, 01 Jan 2024 00:00:00 GMT"}, "Server": {"cloudflare"},
	}
	sent := map[string][]string{
		"Set-Cookie": {"a=b"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"timeout=5"}, "Alt-Svc": {`h3=":443"`}, "Proxy-Authenticate": {"Basic"},
		"Trailer": {"X-Sum"}, "X-Buffer-Run-Id": {"forged"}, "X-Buffer-Token": {"forged"}, "Access-Control-Allow-Origin": {"*"}, "Cache-Control": {"max-age=60"},
	}
	maps.Copy(sent, kept)
	events := fakellm.Chat("a ")
	body := append([]fakellm.Op{answer(200, "chunked", sent)}, fakellm.Play(events, 0)...)
	g.Fake.Script("primary", append(body, fakellm.Done()))
	for i, a := range []rig.Answer{g.Chat("Idempotency-Key", "a"), g.Chat("Idempotency-Key", "a")} {
		if a.Status != 200 || !bytes.Equal(a.Body, bytes.Join(events, nil)) {
			t.Fatalf("%d, %d bytes", a.Status, len(a.Body))
		}
		want := maps.Clone(kept)
		maps.Copy(want, map[string][]string{
			"X-Buffer-Run-Id": {a.RunID()}, "X-Buffer-Status": a.Header["X-Buffer-Status"], "X-Buffer-From": {"0"}, "X-Buffer-Next": a.Header["X-Buffer-Next"],
			"Location": {"/runs/" + a.RunID()}, "Cache-Control": {"no-cache, no-transform"}, "X-Accel-Buffering": {"no"}, "X-Buffer-Attempts": {"1"}, "Cf-Aig-Run-Id": {a.RunID()},
		})
		if i == 1 {
			want["Idempotent-Replayed"] = []string{"true"}
		}
		for _, name := range slices.Sorted(maps.Keys(a.Header)) {
			if !slices.Equal(a.Header[name], want[name]) {
				t.Errorf("answer %d: %s is %q, want %q", i, name, a.Header[name], want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("answer %d lacks %v", i, want)
		}
	}
}

func TestForward_InformationalAnswersAreNotSent(t *testing.T) {
	g := rig.New(t, rig.Options{})
	hints := []fakellm.Op{answer(103, "raw", map[string][]string{"Link": {"</a>"}}), answer(102, "raw", nil)}
	g.Fake.Script("primary/v1/chat", append(hints, fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("a "), 0)...)...))
	g.Fake.Script("primary/v1/models", append(hints, fakellm.JSON(200, `{}`)))
	for _, call := range []string{"POST /openai/v1/chat/completions", "GET /openai/v1/models"} {
		method, path, _ := strings.Cut(call, " ")
		req := g.Request(method, path, rig.ChatBody)
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				t.Errorf("%s: status %d was sent", call, code)
				return nil
			},
		}))
		resp, err := g.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.Header.Get("Link") != "" {
			t.Errorf("%s: %d %v", call, resp.StatusCode, resp.Header)
		}
	}
}

func TestForward_TrailersOfARunAreDropped(t *testing.T) {
	g := rig.New(t, rig.Options{})
	const body = `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
	g.Fake.Script("primary", []fakellm.Op{
		answer(200, "raw", map[string][]string{"Content-Type": {"application/json"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X-Sum"}}),
		fakellm.Data(fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(body), body)), fakellm.End(),
	})
	resp := g.Open("POST", "/openai/v1/chat/completions", `{"model":"m"}`)
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(b) != body || err != nil || len(resp.Trailer) > 0 {
		t.Errorf("%d %s %v, trailers %v", resp.StatusCode, b, err, resp.Trailer)
	}
}

// A stream that is compressed although that was not asked for cannot be read, and is no answer.
func TestForward_CompressedStreamIsNoAnswer(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(bytes.Join(fakellm.Chat("a ", "b "), nil))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	g := rig.New(t, rig.Options{})
	headers := map[string][]string{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}
	g.Fake.Script("primary", []fakellm.Op{answer(200, "length", headers), fakellm.Bytes(packed.Bytes())})
	if a := g.Chat("X-Buffer-Budget", "attempts=1"); a.Status != 502 || !bytes.Contains(a.Body, []byte("upstream_failed")) {
		t.Errorf("%d %q %v, want 502", a.Status, a.Body, a.Err)
	}
}

func TestForward_CallWithoutStreamIsARunOfOneChunk(t *testing.T) {
	g := rig.New(t, rig.Options{})
	for _, path := range []string{
		"/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages", "/gemini/v1beta/models/g:generateContent",
		"/bedrock/model/m/converse", "/bedrock/model/m/invoke", "/ollama/api/chat", "/openai/v1/completions",
	} {
		first := g.Do("POST", path, `{"model":"m","stream":false}`, "Idempotency-Key", "key of "+path)
		again := g.Do("POST", path, `{"model":"m","stream":false}`, "Idempotency-Key", "key of "+path)
		run := g.Await(first.RunID(), buffer.Completed)
		if run.Head != 1 || run.Stream || first.Status != 200 || first.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d, %d chunks, %v", path, first.Status, run.Head, first.Header)
		}
		if !bytes.Equal(first.Body, again.Body) || len(first.Body) == 0 || again.RunID() != first.RunID() || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the replay is run %s, %d bytes of %d", path, again.RunID(), len(again.Body), len(first.Body))
		}
		if a := g.Do("GET", "/resume", "", "Idempotency-Key", "key of "+path); !bytes.Equal(a.Body, first.Body) || a.Err != nil {
			t.Errorf("%s: /resume by key gave %d %d bytes", path, a.Status, len(a.Body))
		}
	}
	if n := g.Fake.Count(""); n != 8 {
		t.Errorf("%d provider calls, want 8", n)
	}
}

func TestSteering_BadValuesAreRefusedByName(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true})
	nine := strings.TrimPrefix(strings.Repeat(",a%d=b", 9), ",")
	for header, values := range map[string][]string{
		"X-Buffer-Ttl":           {"never", "0", "0s", "-1h", "30", "1 h", "1h;"},
		"X-Buffer-Tag":           {"a", "=b", "a=b,c", "a=b,,c=d", "é=b", "a=\x01", fmt.Sprintf(nine, 1, 2, 3, 4, 5, 6, 7, 8, 9), "a=" + strings.Repeat("x", 300)},
		"X-Buffer-Budget":        {"3", "attempts", "attempts=0", "attempts=-1", "attempts=x", "elapsed=0s", "elapsed=5", "cost=-1", "cost=NaN", "cost=Inf", "cost=$1", "attempts=3;size=2", "attempts=3;;"},
		"X-Buffer-Kind":          {"write", "READ_ONLY", "read_only,external"},
		"X-Buffer-On-Disconnect": {"stop", "cancel-after", "cancel-after=", "cancel-after=0s", "cancel-after=-1s", "cancel-after=30", "Continue"},
		"X-Buffer-Heartbeat":     {"on", "0", "1", "-1s", "1ms", "never"},
		"X-Buffer-From":          {"x", "-1", "+1", "1.5", "1e3", "9223372036854775808", " ", "0x1"},
		"X-Buffer-Run-Id":        {"nonsense", "01JZZZZZZZ000000000000000", "01JZZZZZZZ00000000000000001", "81JZZZZZZZ0000000000000001", "01JZZZZZZZ000000000000000U", "00000000000000000000000000"},
		"X-Buffer-Operation":     {strings.Repeat("x", 256), "é"},
		"Idempotency-Key":        {`""`, strings.Repeat("x", 256), "é"},
	} {
		for _, value := range values {
			for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages"} {
				req := g.Request("POST", path, rig.ChatBody)
				req.Header[header] = []string{value}
				resp, err := g.Client.Do(req)
				if err != nil {
					if strings.Contains(err.Error(), "invalid header field value") {
						continue // net/http does not let it out
					}
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusBadRequest || !bytes.Contains(bytes.ToLower(b), []byte(strings.ToLower(header))) || err != nil {
					t.Errorf("%s: %q: %d %s %v, want 400 that names the header", header, value, resp.StatusCode, b, err)
				}
			}
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d provider calls, want none", n)
	}
	wantNoRuns(t, g)
}

func TestSteering_GoodValuesAreKept(t *testing.T) {
	g := rig.New(t, rig.Options{})
	a := g.Chat("X-Buffer-TTL", "90m", "X-Buffer-Tag", "turn=1, user=a=b", "X-Buffer-Budget", "attempts=2; elapsed=1m;cost=0.5", "X-Buffer-Kind", "external",
		"X-Buffer-On-Disconnect", "cancel-after=30s", "X-Buffer-Heartbeat", "off", "X-Buffer-Operation", "op 1", "X-Buffer-From", "5")
	if a.Status != 200 || a.Header.Get("X-Buffer-From") != "0" {
		t.Fatalf("%d %s, from %s", a.Status, a.Body, a.Header.Get("X-Buffer-From"))
	}
	run := g.Await(a.RunID(), buffer.Completed)
	got := fmt.Sprintf("%v %v %v %v %v %v %v %v", run.TTL, run.Tags, run.Budget.Attempts, run.Budget.Elapsed, run.Budget.CostUSD, run.Kind, run.OnDisconnect, run.Operation)
	if want := "1h30m0s map[turn:1 user:a=b] 2 1m0s 0.5 external {true 30s} op 1"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if long := g.Chat("X-Buffer-TTL", "9000h"); g.Await(long.RunID(), buffer.Completed).TTL.Hours() != 24 {
		t.Error("a TTL above the maximum is not cut to it")
	}
}
