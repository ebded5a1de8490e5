package examples

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// The page asks again with its key when it is reloaded, and reads the same run from its beginning.
func survivesReload(t *testing.T, spool string) {
	dir := filepath.Join("..", "..", "examples", "chat")
	watchAll(t, filepath.Join(dir, "*"), filepath.Join("..", "..", "clients", "js", "src", "events.js"))
	fake := fakellm.Start(t, fakellm.Config{})
	gate := make(chan struct{})
	events := fakellm.Chat("Once ", "upon ", "a time.")
	body := append(fakellm.Play(events[:3], 0), fakellm.Gate(gate))
	fake.Script("", fakellm.Stream("text/event-stream", append(body, fakellm.Play(events[3:], 0)...)...))
	_, addr := serve(t, spool, "127.0.0.1:0", t.TempDir(), fake.URL)
	server := start(t, exec.Command("node", filepath.Join(dir, "server.mjs"), "http://"+addr, "0"), func(line string) string { return line })
	url := server.saying(t)

	readUntil(t, url+"/", "followRun")
	readUntil(t, url+"/events.js", "export function followRun")
	type place struct{ Run, Events string }
	ask := func() (p place) {
		resp, err := http.Post(url+"/ask", "text/plain", strings.NewReader(`{"key":"k","messages":[{"role":"user","content":"Tell me a tale."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Run == "" {
			t.Fatalf("%s: %v", resp.Status, err)
		}
		return p
	}
	before := ask()
	readUntil(t, before.Events, `"upon "`)
	close(gate)
	after := ask()
	got := string(readUntil(t, after.Events, "event: completed"))
	for _, e := range []string{`"Once "`, `"upon "`, `"a time."`, "[DONE]", "event: completed"} {
		if strings.Count(got, e) != 1 {
			t.Errorf("%s is not once in %s", e, got)
		}
	}
	if after.Run != before.Run || fake.Count("") != 1 {
		t.Errorf("runs %s and %s, %d calls to the provider", before.Run, after.Run, fake.Count(""))
	}
}
