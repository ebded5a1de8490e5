package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	spool "github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/test/fakellm"
)

// asAgent in the environment makes the test binary the program itself, so that a test can kill it.
const asAgent = "SPOOL_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// sdks are the clients that the transport is shown with: how each is asked, and what it is answered.
var sdks = []struct {
	client, provider, contentType string
	events                        func(texts ...string) [][]byte
}{
	{"openai-go-chat", "/openai", "text/event-stream", fakellm.Chat},
	{"openai-go-responses", "/openai", "text/event-stream", fakellm.Responses},
	{"anthropic-go", "/anthropic", "text/event-stream", fakellm.Messages},
	{"genai-go", "/gemini", "text/event-stream", fakellm.GeminiSSE},
}

// text is an answer, word by word.
var text = strings.SplitAfter(fakellm.DefaultText, " ")

// startSpool builds Spool and starts it in front of the scripted provider. It ends with the test.
func startSpool(t *testing.T, fake *fakellm.Server) *spool.Client {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "spool")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/spool")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--grace", "1ms"}
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		args = append(args, "--provider", name+"="+fake.URL+"/primary")
	}
	cmd := exec.Command(bin, args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(url)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				url <- "http://" + m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended already
		<-read
		if err := cmd.Wait(); err != nil {
			t.Error("spool:", err)
		}
	})
	base, ok := <-url
	if !ok {
		t.Fatal("spool does not serve")
	}
	return &spool.Client{BaseURL: base, Credential: "k"}
}

var serving = regexp.MustCompile(`"msg":"serving","address":"([^"]*)"`)

// runs are the ids of the caller's runs, newest first.
func runs(t *testing.T, c *spool.Client) (ids []string) {
	t.Helper()
	for run, err := range c.List(t.Context(), spool.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.ID)
	}
	return ids
}
