package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
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

// A client that asks before it sends is told at once, and sends nothing.
func TestForward_BodyOverTheLimitIsNotAskedFor(t *testing.T) {
	g := rig.New(t, rig.Options{Plain: true, Limits: api.Limits{Body: 1000}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 413 ") || err != nil {
		t.Errorf("%q %v, want 413", line, err)
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
