package binary

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Patience is how long anything may take before it is given up as hung.
const Patience = 30 * time.Second

// Service is the binary and what every life of it is started with.
type Service struct {
	Path string // of the binary
	Dir  string // the data folder
	Args []string
	Env  []string  // all that there is: no setting comes from outside
	Log  io.Writer // what it prints, for people
}

// Process is one life of the service.
type Process struct {
	Ready  chan struct{} // closed when it serves; URL, Admin and Recovered are known then
	Exited chan struct{} // closed when it has ended; Strays is known then

	URL       string
	Admin     string   // URL of its admin listener, where it has one
	Recovered int      // how many runs of a dead owner it found
	Strays    []string // what it printed that is no log line: a panic, a refusal to start

	cmd *exec.Cmd
}

// Start starts a life on a free port. It does not wait until the process serves.
func (s Service) Start(args ...string) (*Process, error) {
	all := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", s.Dir}, s.Args...)
	p := &Process{cmd: exec.Command(s.Path, append(all, args...)...), Ready: make(chan struct{}), Exited: make(chan struct{})}
	p.cmd.Env = append([]string{}, s.Env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.follow(stderr, s.Log)
	return p, nil
}

// Serve starts a life and returns once it serves.
func (s Service) Serve(args ...string) (*Process, error) {
	p, err := s.Start(args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Ready:
		return p, nil
	case <-p.Exited:
		return nil, fmt.Errorf("spool did not start: %q", p.Strays)
	case <-time.After(Patience):
		p.Kill()
		return nil, errors.New("spool does not serve")
	}
}

// Check runs `spool check` on the data folder; its error holds what was found.
func (s Service) Check(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, s.Path, "check", s.Dir).CombinedOutput(); err != nil {
		return fmt.Errorf("spool check: %w\n%s", err, out)
	}
	return nil
}

// follow reads the process's log until it ends.
func (p *Process) follow(stderr io.Reader, log io.Writer) {
	defer close(p.Exited)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text()) // nothing depends on it
		var line struct {
			Msg, Address, Admin string
			Recovered           int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			p.Strays = append(p.Strays, lines.Text())
			continue
		}
		if line.Msg == "serving" {
			p.URL, p.Admin, p.Recovered = "http://"+line.Address, "http://"+line.Admin, line.Recovered
			close(p.Ready)
		}
	}
	_ = p.cmd.Wait() // how it ended is in ProcessState
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill is kill -9. It returns when the process is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.Exited
}

// Term asks the process to stop.
func (p *Process) Term() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Quit ends the process with the stacks of all its goroutines, which it prints.
func (p *Process) Quit() error { return p.cmd.Process.Signal(syscall.SIGQUIT) }

// Insist asks the process to stop, as a person does who presses the keys again, until it has.
func (p *Process) Insist() {
	for hung := time.After(Patience); ; {
		_ = p.Term() // it may have ended just now
		select {
		case <-p.Exited:
			return
		case <-hung:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Code waits for the process's own end and returns its exit code; -1 is a signal's.
func (p *Process) Code() (int, error) {
	select {
	case <-p.Exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(Patience):
		return 0, errors.New("spool does not stop")
	}
}
