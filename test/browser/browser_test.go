//go:build browser

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

// result is a line of a script's: one case, and what was wrong with it.
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
	Text     string `json:"text"`     // what both say
	Desk     string `json:"desk"`     // a third one, for chats
	Control  string `json:"control"`  // what may be asked of it
	Example  string `json:"example"`  // the page of examples/chat, at the desk
}

func TestBrowser(t *testing.T) {
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	t.Run("pages", func(t *testing.T) { drive(t, "cases.mjs", setUp(t)) })
	t.Run("client", readWithClient)
	t.Run("console", lookAtConsole)
}

// drive runs the cases of a script, which is told the job.
func drive(t *testing.T, script string, job []byte) {
	t.Helper()
	driver := exec.CommandContext(t.Context(), "node", append([]string{script}, flag.Args()...)...)
	driver.Stdin = bytes.NewReader(job)
	driver.Stderr = os.Stderr
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
	if err := driver.Wait(); err != nil || cases == 0 && flag.NArg() == 0 {
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

	site := bundle(t)
	home, foreign := pages(t, site), pages(t, site)
	providers := []string{
		"--provider", "openai=" + fake.URL + "/paced", "--provider", "anthropic=" + fake.URL + "/named",
		"--provider", "open:openai_chat=" + fake.URL + "/open", "--cors-origin", home,
	}
	bin := build(t)
	cert, key := certificate(t)
	plain := "http://" + serving(t, bin, providers...)
	desk := startDesk(t, bin, home)
	j := job{
		Spool: plain, Secure: "https://" + serving(t, bin, append(providers, "--tls-cert", cert, "--tls-key", key)...),
		Home: home, Foreign: foreign, Chat: len(chat), Messages: len(messages), Text: strings.Join(texts, ""),
		Desk: desk.proxy.URL, Control: desk.controls(t), Example: desk.chat,
	}
	j.Cutter, j.Cut = cutting(t, plain)
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// serving starts the service on a folder of its own and returns its address.
func serving(t *testing.T, bin string, args ...string) string {
	t.Helper()
	p, err := serve(t, bin, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return p.said
}

// pages is an origin that serves a folder.
func pages(t *testing.T, dir string) string {
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(s.Close)
	return s.URL
}

// bundle returns a folder with the pages of pages/, each with its script and what that imports in one file.
func bundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("pages")); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	esbuild := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "esbuild"), "pages/react.jsx", "pages/library.js",
		"--bundle", "--format=esm", "--jsx=automatic", "--outdir="+dir, "--allow-overwrite", "--log-level=error",
		"--alias:@spool-dev/client=../../clients/js/src/index.js")
	esbuild.Env = append(os.Environ(), "NODE_PATH="+modules) // for what is imported by files beyond this folder
	if out, err := esbuild.CombinedOutput(); err != nil {
		t.Fatalf("esbuild: %v\n%s", err, out)
	}
	return dir
}

// cutting starts a cutter before a Spool. It returns its URL, and one that cuts what there is at a POST.
func cutting(t *testing.T, spool string) (url, cut string) {
	c := cutter.Start(t, spool, cutter.Whole)
	order := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.Drop() }))
	t.Cleanup(order.Close)
	return c.URL, order.URL
}
