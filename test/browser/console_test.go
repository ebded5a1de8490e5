//go:build browser

package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

// consoleJob is what console.mjs is told.
type consoleJob struct {
	Spool    string            `json:"spool"`    // where runs are made; its callers have keys
	Admin    string            `json:"admin"`    // its admin listener
	Keys     map[string]string `json:"keys"`     // of its callers
	Gate     string            `json:"gate"`     // asked once: lets the gated answer go on
	Evil     string            `json:"evil"`     // what the hostile provider says
	Pictures string            `json:"pictures"` // the folder for screenshots
}

// evil is an answer that would be more than a text, if it were let.
const evil = `</div><script>window.owned=1</script><img src=x onerror="window.owned=1"><svg onload="window.owned=1">`

// lookAtConsole drives the console's pages: what they show, that it moves, and that everybody can use it.
// Its pictures are in the artifacts.
func lookAtConsole(t *testing.T) {
	job, err := json.Marshal(consoleSetUp(t))
	if err != nil {
		t.Fatal(err)
	}
	drive(t, "console.mjs", job)
}

const story = "A durable stream outlives the process that asked for it. Every word that a model writes is kept in the order " +
	"of its arrival before anybody reads it, so a reader that loses its connection comes back, names the last position that it saw, and goes on from there.\n\n" +
	"Nothing is bought twice, nothing is lost, and the answer ends only when its author says so."

func consoleSetUp(t *testing.T) consoleJob {
	t.Helper()
	words := strings.SplitAfter(story, " ")
	fake := fakellm.Start(t, fakellm.Config{})
	stream := func(events [][]byte, every time.Duration) []fakellm.Op {
		return fakellm.Stream("text/event-stream", fakellm.Play(events, every)...)
	}
	open := func(events [][]byte) []fakellm.Op { // the first words, and no end
		return append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(events[:6], 0), fakellm.Hang(0))...)
	}
	fake.Script("quick", stream(fakellm.Chat(words...), 0))
	fake.Script("paced", stream(fakellm.Messages(words...), 40*time.Millisecond))
	gate := make(chan struct{})
	opener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(gate) }))
	t.Cleanup(opener.Close)
	gated := fakellm.Messages(words...)
	half := append(fakellm.Play(gated[:30], 5*time.Millisecond), fakellm.Gate(gate))
	fake.Script("gated", fakellm.Stream("text/event-stream", append(half, fakellm.Play(gated[30:], 5*time.Millisecond)...)...))
	fake.Script("open", open(fakellm.Chat(words...)))
	fake.Script("evil", stream(fakellm.Chat(evil), 0))
	fake.Script("busy", []fakellm.Op{fakellm.JSON(503, `{"error":{"message":"overloaded"}}`)}, stream(fakellm.Chat(words...), 5*time.Millisecond))
	fake.Script("refuses", []fakellm.Op{fakellm.JSON(401, `{"error":{"message":"Incorrect API key provided."}}`)})
	fake.Script("cut", append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(fakellm.Chat(words...)[:9], 0), fakellm.RST())...))

	keys := map[string]string{"billing": "a key for billing agents", "research": "a key for research agents"}
	config := filepath.Join(t.TempDir(), "spool.yaml")
	text := "auth: {keys: {billing: " + keys["billing"] + ", research: " + keys["research"] + "}}\n" +
		"providers:\n  openai: {base_url: " + fake.URL + "/quick, price: {input: 1.25, output: 10}}\n  anthropic: {base_url: " + fake.URL + "/paced}\n" +
		"  gated: {base_url: " + fake.URL + "/gated, dialect: anthropic}\n"
	for _, name := range []string{"open", "evil", "busy", "refuses", "cut"} {
		text += "  " + name + ": {base_url: " + fake.URL + "/" + name + ", dialect: openai_chat}\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	serving := func(line string) string {
		if address(line) == "" {
			return ""
		}
		return line
	}
	p, err := start(t, exec.Command(build(t), "serve", "--listen", "127.0.0.1:0", "--sync", "normal", "--data", t.TempDir(),
		"--config", config, "--admin-listen", "127.0.0.1:0"), serving)
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ Address, Admin string }
	if err := json.Unmarshal([]byte(p.said), &said); err != nil {
		t.Fatal(err)
	}
	return consoleJob{
		Spool: "http://" + said.Address, Admin: "http://" + said.Admin, Keys: keys, Gate: opener.URL, Evil: evil, Pictures: t.ArtifactDir(),
	}
}
