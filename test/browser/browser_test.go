//go:build browser

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

// result is a line of cases.mjs: one case, and what was wrong with it.
type result struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// job is what cases.mjs is told: base URLs, and what the providers say.
type job struct {
	Spool    string `json:"spool"`    // plain, HTTP/1.1 for a browser
	Secure   string `json:"secure"`   // another one, over TLS: HTTP/2
	Cutter   string `json:"cutter"`   // before the plain one
	Cut      string `json:"cut"`      // POST: cuts every connection of the cutter
	Home     string `json:"home"`     // an origin whose pages may read
	Foreign  string `json:"foreign"`  // one whose pages may not
	Chat     int    `json:"chat"`     // events of provider openai
	Messages int    `json:"messages"` // events of provider anthropic
}

func TestBrowser(t *testing.T) {
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	driver := exec.CommandContext(t.Context(), "node", "cases.mjs")
	driver.Stdin = bytes.NewReader(setUp(t))
	driver.Stderr = os.Stderr
	lines, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for in := bufio.NewScanner(lines); in.Scan(); {
		var r result
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", in.Bytes(), err)
		}
		cases++
		t.Run(r.Name, func(t *testing.T) {
			if r.Error != "" {
				t.Error(r.Error)
			}
		})
	}
	if err := driver.Wait(); err != nil || cases == 0 {
		t.Errorf("%d cases, then %v", cases, err)
	}
}

// setUp starts everything but the browser, and returns the job as JSON.
func setUp(t *testing.T) []byte {
	t.Helper()
	texts := strings.Split(strings.Repeat("word ", 30), " ")
	chat, messages := fakellm.Chat(texts...), fakellm.Messages(texts...)
	fake := fakellm.Start(t, fakellm.Config{})
	fake.Script("paced", fakellm.Stream("text/event-stream", fakellm.Play(chat, 100*time.Millisecond)...))
	fake.Script("named", fakellm.Stream("text/event-stream", fakellm.Play(messages, 20*time.Millisecond)...))
	fake.Script("open", append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(chat[:3], 0), fakellm.Hang(0))...))

	home, foreign := pages(t), pages(t)
	providers := []string{
		"--provider", "openai=" + fake.URL + "/paced", "--provider", "anthropic=" + fake.URL + "/named",
		"--provider", "open:openai_chat=" + fake.URL + "/open", "--cors-origin", home,
	}
	bin := build(t)
	cert, key := certificate(t)
	j := job{
		Spool:  "http://" + serve(t, bin, providers...),
		Secure: "https://" + serve(t, bin, append(providers, "--tls-cert", cert, "--tls-key", key)...),
		Home:   home, Foreign: foreign, Chat: len(chat), Messages: len(messages),
	}
	c := cutter.Start(t, j.Spool, cutter.Whole)
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.Drop() }))
	t.Cleanup(cut.Close)
	j.Cutter, j.Cut = c.URL, cut.URL
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pages is an origin with one empty page.
func pages(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>page</title>")) // the browser would notice
	}))
	t.Cleanup(s.Close)
	return s.URL
}
