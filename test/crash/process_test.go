package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/program"
)

// patience is how long anything may take before the test gives it up as hung.
const patience = 30 * time.Second

// build makes the binary as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	binary, err := program.Build(t.Context(), t.TempDir(), "cmd/spool")
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// service is the binary and what it is started with, life after life.
type service struct {
	binary   string
	dir      string // the data folder
	provider string // base URL of the provider openai
	log      io.Writer
}

// process is one life of the service.
type process struct {
	cmd    *exec.Cmd
	ready  chan struct{} // closed when it serves; url and recovered are known then
	exited chan struct{} // closed when it has ended; strays is known then

	url       string
	recovered int      // how many runs of a dead owner it found
	strays    []string // what it printed that is no log line: a panic, a refusal to start
}

// start starts a life. It does not wait until the process serves.
func (s service) start(t *testing.T, args ...string) *process {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", s.dir, "--provider", "openai=" + s.provider}, args...)
	p := &process{cmd: exec.Command(s.binary, args...), ready: make(chan struct{}), exited: make(chan struct{})}
	p.cmd.Env = []string{} // no setting comes from outside
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(stderr, s.log)
	t.Cleanup(p.kill)
	return p
}

// serve starts a life and returns once it serves.
func (s service) serve(t *testing.T, args ...string) *process {
	t.Helper()
	p := s.start(t, args...)
	select {
	case <-p.ready:
	case <-p.exited:
		t.Fatalf("spool did not start: %q", p.strays)
	case <-time.After(patience):
		t.Fatal("spool does not serve")
	}
	return p
}

// check runs `spool check` on the data folder; its error holds what was found.
func (s service) check(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, s.binary, "check", s.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("spool check: %w\n%s", err, out)
	}
	return nil
}

// follow reads the process's log until it ends.
func (p *process) follow(stderr io.Reader, log io.Writer) {
	defer close(p.exited)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text()) // for people; nothing depends on it
		var line struct {
			Msg, Address string
			Recovered    int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			p.strays = append(p.strays, lines.Text())
			continue
		}
		if line.Msg == "serving" {
			p.url, p.recovered = "http://"+line.Address, line.Recovered
			close(p.ready)
		}
	}
	_ = p.cmd.Wait() // the exit code is in ProcessState
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// term asks the process to stop.
func (p *process) term(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// insist asks the process to stop, as a person does who presses the keys again, until it has.
func (p *process) insist() {
	for hung := time.After(patience); ; {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended just now
		select {
		case <-p.exited:
			return
		case <-hung:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// code waits for the process's own end and returns its exit code; -1 is a signal's.
func (p *process) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("spool does not stop")
	}
	return p.cmd.ProcessState.ExitCode()
}

// logFile is where the processes of a test print to.
func logFile(t *testing.T) io.Writer {
	t.Helper()
	f, err := os.Create(filepath.Join(t.ArtifactDir(), "spool.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
