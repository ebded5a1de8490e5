package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/rig"
)

// script is a transport that answers by itself, and keeps what it was asked.
type script struct {
	answer func(n int, req *http.Request) (*http.Response, error)

	mu    sync.Mutex
	asked []*http.Request
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, req)
	n := len(s.asked) - 1
	s.mu.Unlock()
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body) // of a test's own request
		req.Body.Close()
	}
	return s.answer(n, req)
}

// posts are the keys of the calls that were sent.
func (s *script) posts() (keys []string) {
	for _, req := range s.asked {
		if req.Method == "POST" {
			keys = append(keys, req.Header.Get("Idempotency-Key"))
		}
	}
	return keys
}

func respond(status int, body string, headers ...string) (*http.Response, error) {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp, nil
}

const spool = "http://spool.test/buffer"

func chat(t *testing.T, body string, headers ...string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), "POST", spool+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func refuse(int, *http.Request) (*http.Response, error) {
	return respond(429, `{}`, wire.HeaderStatus, "failed", wire.HeaderRunID, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
}

func TestTransport_KeyOfACall(t *testing.T) {
	t.Parallel()
	own := func(*http.Request) string { return "of Key" }
	for _, tt := range []struct {
		name string
		key  func(*http.Request) string
		ctx  string
		head []string
		want string
	}{
		{"header", own, "of context", []string{"Idempotency-Key", "of header"}, "of header"},
		{"context", own, "of context", nil, "of context"},
		{"func", own, "", nil, "of Key"},
		{"run id", nil, "", []string{"X-Buffer-Run-Id", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{answer: refuse}
			tr := &client.Transport{BaseURL: spool, Base: s, Key: tt.key}
			req := chat(t, "{}", tt.head...)
			if tt.ctx != "" {
				req = req.WithContext(client.WithKey(req.Context(), tt.ctx))
			}
			before := req.Header.Clone()
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			sent := s.asked[0]
			if sent.Header.Get("Idempotency-Key") != tt.want || sent.Header.Get("X-Buffer-Heartbeat") != "off" || sent.GetBody != nil {
				t.Errorf("sent with %v", sent.Header)
			}
			if len(req.Header) != len(before) {
				t.Errorf("the request was changed: %v", req.Header)
			}
		})
	}
}

// One call of an SDK has one key over all of its tries; two calls have two, be they alike.
func TestTransport_RetriesOfAnSDKKeepTheirKey(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, tr *client.Transport, req *http.Request) {
		t.Helper()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	t.Run("by count", func(t *testing.T) {
		s := &script{answer: refuse}
		tr := &client.Transport{BaseURL: spool, Base: s}
		for _, count := range []string{"0", "0", "1", "1", "2", "0"} {
			send(t, tr, chat(t, "{}", "X-Stainless-Retry-Count", count))
		}
		send(t, tr, chat(t, "{other}", "X-Stainless-Retry-Count", "1"))
		k := s.posts()
		firsts, seconds := map[string]bool{k[0]: true, k[1]: true}, map[string]bool{k[2]: true, k[3]: true}
		if k[0] == k[1] || len(seconds) != 2 || !firsts[k[2]] || !firsts[k[3]] || !seconds[k[4]] || firsts[k[5]] || firsts[k[6]] || k[5] == k[6] {
			t.Errorf("keys %q", k)
		}
	})
	t.Run("the same request", func(t *testing.T) {
		s := &script{answer: refuse}
		tr := &client.Transport{BaseURL: spool, Base: s}
		req := chat(t, "{}")
		send(t, tr, req)
		req.Body, _ = req.GetBody()
		send(t, tr, req)
		send(t, tr, chat(t, "{}"))
		if k := s.posts(); k[0] != k[1] || k[0] == k[2] {
			t.Errorf("keys %q", k)
		}
	})
	t.Run("after a good answer", func(t *testing.T) {
		s := &script{answer: func(int, *http.Request) (*http.Response, error) { return respond(200, "{}") }}
		tr := &client.Transport{BaseURL: spool, Base: s}
		send(t, tr, chat(t, "{}"))
		send(t, tr, chat(t, "{}", "X-Stainless-Retry-Count", "1"))
		if k := s.posts(); k[0] == k[1] {
			t.Errorf("keys %q", k)
		}
	})
}

// Where the answer's head is lost, the call is sent again only if Spool does not know it.
func TestTransport_AsksBeforeItSendsAgain(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection broke")
	unknown := func() (*http.Response, error) {
		return respond(404, `{"code":"not_found","detail":"no such run"}`, "Content-Type", "application/problem+json")
	}
	found := func() (*http.Response, error) {
		return respond(200, "text", wire.HeaderStatus, "completed", wire.HeaderRunID, "01ARZ3NDEKTSV4RRFFQ69G5FAV", wire.HeaderFrom, "0")
	}
	for _, tt := range []struct {
		name   string
		answer []func() (*http.Response, error)
		want   string // methods
		status int
	}{
		{"it came", []func() (*http.Response, error){fail(broken), found}, "POST GET", 200},
		{"it never came", []func() (*http.Response, error){fail(broken), unknown, found}, "POST GET POST", 200},
		{"nobody answers for a while", []func() (*http.Response, error){fail(broken), fail(io.EOF), fail(broken), found}, "POST GET GET GET", 200},
		{"a proxy's 504", []func() (*http.Response, error){status(504), found}, "POST GET", 200},
		{"a 404 of something else", []func() (*http.Response, error){fail(broken), status(404)}, "POST GET", 0},
		{"draining, then gone elsewhere", []func() (*http.Response, error){status(503), unknown, found}, "POST GET POST", 200},
		{"busy for too long", []func() (*http.Response, error){status(429), unknown, status(429), unknown, status(429), unknown, status(429)}, "POST GET POST GET POST GET POST", 429},
		{"a retry-after beyond patience", []func() (*http.Response, error){later(503, "3600")}, "POST", 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{answer: func(n int, _ *http.Request) (*http.Response, error) { return tt.answer[min(n, len(tt.answer)-1)]() }}
			p := quick
			p.Tries = 3
			tr := &client.Transport{BaseURL: spool, Base: s, Patience: p}
			resp, err := tr.RoundTrip(chat(t, "{}"))
			got := 0
			if err == nil {
				got = resp.StatusCode
				resp.Body.Close()
			}
			var methods []string
			keys := map[string]bool{}
			for _, req := range s.asked {
				methods = append(methods, req.Method)
				keys[req.Header.Get("Idempotency-Key")] = true
			}
			if strings.Join(methods, " ") != tt.want || got != tt.status || len(keys) != 1 {
				t.Errorf("%q, status %d, keys %v, %v", methods, got, keys, err)
			}
		})
	}
}

func fail(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

func status(code int) func() (*http.Response, error) { return later(code, "") }

func later(code int, after string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return respond(code, "no", "Retry-After", after) }
}

// What is no generation call below the base URL passes untouched.
func TestTransport_TouchesCallsAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, url string
		touched     bool
	}{
		{"POST", spool + "/openai/v1/responses", true},
		{"POST", "http://spool.test:80/buffer/openai/v1/responses", true},
		{"POST", "HTTP://SPOOL.test/buffer/openai/v1/responses", true},
		{"GET", spool + "/openai/v1/responses", false},
		{"POST", spool + "/openai/v1/files", false},
		{"POST", spool + "/own/anything", true},
		{"POST", "http://spool.test/other/openai/v1/responses", false},
		{"POST", "http://spool.test:8787/buffer/openai/v1/responses", false},
		{"POST", "https://spool.test/buffer/openai/v1/responses", false},
		{"POST", "https://api.openai.com/v1/responses", false},
	} {
		s := &script{answer: func(int, *http.Request) (*http.Response, error) { return respond(503, "") }}
		p := quick
		p.Tries = 1
		tr := &client.Transport{BaseURL: spool + "/", Base: s, Patience: p,
			Generates: func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/own/") }}
		req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		_, touched := s.asked[0].Header["Idempotency-Key"]
		if touched != tt.touched || !touched && s.asked[0] != req {
			t.Errorf("%s %s: touched %v", tt.method, tt.url, touched)
		}
	}
	if _, err := (&client.Transport{}).RoundTrip(chat(t, "")); err == nil {
		t.Error("a transport without a base URL is of no use")
	}
}

// The transport and the service agree on what generates.
func TestTransport_GenerationIsTheServices(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/responses/", "/v1/messages", "/v1/messages/count_tokens",
		"/v1beta/models/g:generateContent", "/v1beta/models/g:streamGenerateContent", "/v1beta/models/g:countTokens",
		"/model/m/converse", "/model/m/converse-stream", "/model/m/invoke", "/model/m/invoke-with-response-stream",
		"/api/chat", "/api/generate", "/api/embed", "/v1/embeddings", "/v1/xmessages", "/v1/Messages", "/v1/responses/x/cancel",
	} {
		s := &script{answer: refuse}
		tr := &client.Transport{BaseURL: spool, Base: s}
		req, err := http.NewRequestWithContext(t.Context(), "POST", spool+"/p"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		_, want := provider.Generation("POST", path)
		if _, got := s.asked[0].Header["Idempotency-Key"]; got != want {
			t.Errorf("%s: %v, the service says %v", path, got, want)
		}
	}
}

// An agent that starts again and makes its call with the same key reads the same run.
func TestTransport_SameKeyAfterARestart(t *testing.T) {
	t.Parallel()
	a := newAgent(t, rig.Options{}, cutter.Whole)
	ctx := client.WithKey(t.Context(), "order 17")
	var bodies, runs []string
	for range 2 {
		again := &http.Client{Transport: &client.Transport{BaseURL: a.cutter.URL, Base: a.transport.Base}}
		resp, err := again.Do(a.request(ctx, "/openai/v1/chat/completions", asked))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		bodies, runs = append(bodies, string(b)), append(runs, resp.Header.Get("X-Buffer-Run-Id"))
	}
	if bodies[0] != bodies[1] || runs[0] != runs[1] || a.Fake.Count("primary") != 1 {
		t.Errorf("runs %q, bought %d times", runs, a.Fake.Count("primary"))
	}
}
