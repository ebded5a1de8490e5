package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

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

// An answer that is compressed although that was not asked for is given plain, as its headers say.
func TestForward_CompressedAnswerIsGivenPlain(t *testing.T) {
	const whole = `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
	for _, row := range []struct {
		name, contentType, plain string
		status                   int
	}{
		{"stream", "text/event-stream", string(bytes.Join(fakellm.Chat("a ", "b "), nil)), 200},
		{"no stream", "application/json", whole, 200},
		{"refusal", "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`, 401},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{})
			headers := map[string][]string{"Content-Type": {row.contentType}, "Content-Encoding": {"gzip"}}
			g.Fake.Script("primary", []fakellm.Op{answer(row.status, "length", headers), fakellm.Bytes(packed(t, row.plain))})
			body := fmt.Sprintf(`{"model":"m","stream":%t}`, row.name == "stream")
			a := g.Do("POST", "/openai/v1/chat/completions", body)
			if a.Status != row.status || string(a.Body) != row.plain || a.Err != nil || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("%d %q %v %v, want it plain", a.Status, a.Body, a.Header, a.Err)
			}
		})
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
