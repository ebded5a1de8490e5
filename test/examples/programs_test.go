package examples

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/binary"
)

// patience is how long anything may take before it is given up as hung.
const patience = time.Minute

// build builds a program of this module and returns its path.
func build(t *testing.T, name string) string {
	t.Helper()
	bin, err := binary.Build(t.Context(), t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// watch looks at each file, so that go test does not take an old result for one of theirs.
func watch(t *testing.T, files []string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
}

// watchAll is watch for what the patterns match, which is something.
func watchAll(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		watch(t, files)
	}
}

// compile installs what the TypeScript agent's lock file pins, compiles it, and returns its program.
func compile(t *testing.T) string {
	t.Helper()
	src, err := filepath.Abs(filepath.Join("..", "..", "examples", "agent-ts"))
	if err != nil {
		t.Fatal(err)
	}
	watchAll(t, filepath.Join(src, "*.ts"), filepath.Join(src, "*.json"), filepath.Join(src, "..", "..", "clients", "js", "src", "*"))
	dir := t.TempDir()
	for _, args := range [][]string{
		{"npm", "ci", "--no-audit", "--no-fund"},
		{"node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "--outDir", dir},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = src
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(src, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "agent.js")
}

// process is a program that runs beside the test. It is killed with the test.
type process struct {
	cmd    *exec.Cmd
	said   chan string   // its first line that the test waits for
	exited chan struct{} // closed when it has ended; text is known then
	text   strings.Builder
}

// start starts a program. said gets from its first line that find likes what find makes of it.
func start(t *testing.T, cmd *exec.Cmd, find func(line string) string) *process {
	t.Helper()
	p := &process{cmd: cmd, said: make(chan string, 1), exited: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // the same pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(out, find)
	t.Cleanup(p.kill)
	return p
}

func (p *process) follow(out io.Reader, find func(line string) string) {
	defer close(p.exited)
	found := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.text.WriteString(lines.Text() + "\n")
		if what := find(lines.Text()); what != "" && !found {
			found = true
			p.said <- what
		}
	}
	_ = p.cmd.Wait() // its end is in ProcessState
}

// saying waits for what the program has to say.
func (p *process) saying(t *testing.T) string {
	t.Helper()
	select {
	case what := <-p.said:
		return what
	case <-p.exited:
		t.Fatalf("it ended: %s", &p.text)
	case <-time.After(patience):
		t.Fatal("it says nothing")
	}
	return ""
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// endsWithin waits for the program's own end, which must be a good one. It kills it when the time is over.
func (p *process) endsWithin(t *testing.T, d time.Duration) bool {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(d):
		p.kill()
	}
	if state := p.cmd.ProcessState; state.Exited() && !state.Success() {
		t.Fatalf("%s: %s", state, &p.text)
	}
	return p.cmd.ProcessState.Success()
}

// serve starts Spool and returns it with its address, once it serves.
func serve(t *testing.T, bin, listen, data, provider string) (*process, string) {
	t.Helper()
	cmd := exec.Command(bin, "serve", "--listen", listen, "--data", data, "--provider", "openai="+provider)
	cmd.Env = []string{} // no setting comes from outside
	p := start(t, cmd, func(line string) string {
		var said struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &said) != nil || said.Msg != "serving" {
			return "" // a line about something else
		}
		return said.Address
	})
	return p, p.saying(t)
}
