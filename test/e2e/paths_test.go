package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

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
