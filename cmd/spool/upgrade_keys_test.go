package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// A process with a new key in front takes over while a run is live. That run ends whole under its own key, whoever reads
// it; one of the new process is read by all but those who still ask the old one, who are cut and come back to the new.
func TestUpgrade_ToOtherKeys(t *testing.T) {
	open := make(chan struct{})
	fake := fakellm.Start(t, fakellm.Config{})
	events := fakellm.Chat("one ", "two ", "three ")
	held := append(fakellm.Play(events[:2], 0), fakellm.Gate(open))
	fake.Script("p", fakellm.Stream("text/event-stream", append(held, fakellm.Play(events[2:], 0)...)...))

	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	configure := func(names ...string) {
		t.Helper()
		var keys []string
		for _, name := range names {
			keys = append(keys, fmt.Sprintf("{name: %s, key: '%s'}", name, strings.Repeat(name, 64)))
		}
		text := fmt.Sprintf("providers: {p: {dialect: openai_chat, base_url: '%s/p'}}\nencryption: {keys: [%s]}\n", fake.URL, strings.Join(keys, ", "))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("a")
	cmd, lines := serveConfigured(t, config, filepath.Join(dir, "data"))
	var where struct{ Address string }
	if err := json.Unmarshal([]byte(until(t, lines, `"serving"`)), &where); err != nil {
		t.Fatal(err)
	}
	before, after := new(http.Client), new(http.Client) // of connections to the old process, and to the new one
	before.Transport, after.Transport = new(http.Transport), new(http.Transport)
	ask := func(c *http.Client, method, path string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+where.Address+path, strings.NewReader(`{"model": "m", "stream": true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer k")
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	call := func(c *http.Client) (run string, answer *http.Response) {
		t.Helper()
		answer = ask(c, "POST", "/p/v1/chat/completions")
		return answer.Header.Get("X-Buffer-Run-Id"), answer
	}
	whole := func(r *http.Response) bool {
		b, err := io.ReadAll(r.Body)
		return err == nil && r.StatusCode == http.StatusOK && strings.Contains(string(b), "three ")
	}

	old, answer := call(before)
	if _, err := io.ReadAll(ask(before, "GET", "/healthz").Body); err != nil { // a connection that is idle at the hand-over
		t.Fatal(err)
	}
	configure("b", "a")
	if err := cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	var next struct{ PID int }
	if err := json.Unmarshal([]byte(until(t, lines, `"handed over"`)), &next); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(next.PID, syscall.SIGKILL) }) // as well

	fresh, freshAnswer := call(after)
	told := ask(before, "GET", "/runs/"+fresh+"/resume")
	if b, err := io.ReadAll(told.Body); err == nil || len(b) > 0 || !told.Close {
		t.Errorf("of a run that it cannot read the old process tells %q, %v, and closes: %v", b, err, told.Close)
	}
	readers := []*http.Response{answer, freshAnswer, ask(after, "GET", "/runs/"+old+"/resume"), ask(before, "GET", "/runs/"+fresh+"/resume")}
	close(open)
	for i, r := range readers {
		if !whole(r) {
			t.Errorf("reader %d has not got all: %s", i, r.Status)
		}
	}
	before.CloseIdleConnections()
	until(t, lines, `"stopped"`)
	for _, id := range []string{old, fresh} {
		if !whole(ask(after, "GET", "/runs/"+id+"/resume")) {
			t.Errorf("run %s is not whole", id)
		}
	}
	after.CloseIdleConnections()
	if err := syscall.Kill(next.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, lines, `"stopped"`)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the old process: %v", err)
	}
	if out, err := exec.Command("spool", "check", filepath.Join(dir, "data"), "--config", config).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
