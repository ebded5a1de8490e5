package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_PrintsItsAddressAndAnswers(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(script, []byte(`{"primary":[[{"op":"json","status":503}],[{"op":"json","status":201}]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, stop := start(t, "--script", script, "--captures", "../../../testdata/captures", "--text", "hello", "--every", "0")
	for _, step := range []struct {
		path, want string
		status     int
	}{
		{"/primary/v1/messages", "", 503},
		{"/primary/v1/messages", "", 201},
		{"/v1/chat/completions", `"content":"hello"`, 200},
		{"/anthropic-messages-036,chunk=7/v1/messages", "message_stop", 200},
		{"/load/v1/chat/completions?events=2", "[DONE]", 200},
	} {
		resp, err := http.Post("http://"+addr+step.path, "application/json", strings.NewReader(`{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != step.status || !strings.Contains(string(b), step.want) {
			t.Errorf("%s: got %d %s %v", step.path, resp.StatusCode, b, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRun_RefusesWhatItCannotServe(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"primary":[[{"op":"explode"}]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--script", bad}, {"--script", bad + "x"}, {"--captures", t.TempDir()}, {"--listen", "256.0.0.1:1"}, {"--nonsense"}, {"extra"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// start runs the program on a free port; stop ends it and returns what it returned.
func start(t *testing.T, args ...string) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), in, io.Discard)
		in.CloseWithError(err)
		ended <- err
	}()
	stop = func() error {
		cancel()
		return <-ended
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), stop
}
