//go:build browser

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

// desk is what pages with a chat talk to: the server of examples/chat, and a Spool that is stopped and
// started again behind a cutter, so that its address stays. Each answer of its providers waits in its
// middle until the test lets it go on.
type desk struct {
	proxy *cutter.Cutter
	chat  string // URL of the page of examples/chat
	start func() (*process, error)
	spool *process
	fake  *fakellm.Server
	gate  chan struct{} // each value lets one answer go on
}

// The chats' answer. That of the AI SDK's protocol has no id of its message, as without further options.
var (
	tale   = fakellm.Chat("Once ", "upon ", "a ", "time ", "there ", "was ", "a ", "page.")
	uiTale = [][]byte{
		ui(`{"type":"start"}`), ui(`{"type":"text-start","id":"1"}`), words("Once "), words("upon "),
		words("a "), words("time "), words("there "), words("was "), words("a "), words("page."),
		ui(`{"type":"text-end","id":"1"}`), ui(`{"type":"finish"}`), ui(`[DONE]`),
	}
)

func itself(line string) string { return line }

func ui(data string) []byte { return []byte("data: " + data + "\n\n") }

func words(text string) []byte {
	return ui(fmt.Sprintf(`{"type":"text-delta","id":"1","delta":%q}`, text))
}

// startDesk starts a desk for pages of an origin and for those of its own chat server.
func startDesk(t *testing.T, bin, origin string) *desk {
	d := &desk{proxy: cutter.Start(t, "", cutter.Whole), fake: fakellm.Start(t, fakellm.Config{}), gate: make(chan struct{})}
	d.fake.Script("openai", d.halting(tale))
	d.fake.Script("app", d.halting(uiTale))
	server, err := start(t, exec.Command("node", filepath.Join("..", "..", "examples", "chat", "server.mjs"), d.proxy.URL, "0"), itself)
	if err != nil {
		t.Fatal(err)
	}
	d.chat = server.said

	data, config := t.TempDir(), filepath.Join(t.TempDir(), "spool.yaml")
	providers := fmt.Sprintf("providers:\n  openai: {base_url: %q}\n  app: {base_url: %q, dialect: generic, generates: true}\n",
		d.fake.URL+"/openai", d.fake.URL+"/app")
	if err := os.WriteFile(config, []byte(providers), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start = func() (*process, error) {
		p, err := serve(t, bin, data, "--config", config, "--cors-origin", origin, "--cors-origin", d.chat)
		if err == nil {
			d.proxy.Aim(p.said)
		}
		return p, err
	}
	if d.spool, err = d.start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// halting is an answer that waits at the gate after four of its events.
func (d *desk) halting(events [][]byte) []fakellm.Op {
	body := append(fakellm.Play(events[:4], 0), fakellm.Gate(d.gate))
	return fakellm.Stream("text/event-stream", append(body, fakellm.Play(events[4:], 0)...)...)
}

// controls serves what cases.mjs may ask of the desk.
func (d *desk) controls(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /go", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case d.gate <- struct{}{}:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /cut", func(http.ResponseWriter, *http.Request) { d.proxy.Drop() })
	mux.HandleFunc("POST /term", func(http.ResponseWriter, *http.Request) { d.spool.signal(syscall.SIGTERM) })
	mux.HandleFunc("POST /kill", func(http.ResponseWriter, *http.Request) { d.spool.signal(syscall.SIGKILL) })
	mux.HandleFunc("POST /start", func(w http.ResponseWriter, _ *http.Request) {
		<-d.spool.exited
		p, err := d.start()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		d.spool = p
	})
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, len(d.fake.Requests())) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
