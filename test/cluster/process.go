package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	loopback   = "127.0.0.1"
	startLimit = 60 * time.Second // for a program to say that it is ready
)

// process is a program that can be ended in every way, and started again as it was.
type process struct {
	name    string
	program string
	args    []string
	ready   string // what the line that says so has in it
	log     io.Writer

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// start starts it, and returns when it is ready.
func (p *process) start() error {
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SPOOL_") })
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.ended = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	_ = in.Close() // the process has its own
	ready := make(chan struct{})
	go p.follow(out, ready)
	late := time.NewTimer(startLimit)
	defer late.Stop()
	select {
	case <-ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("%s did not start: %s", p.name, p.cmd.ProcessState)
	case <-late.C:
		p.kill()
		return fmt.Errorf("%s did not get ready", p.name)
	}
}

// follow reads what it says until it ends.
func (p *process) follow(out *os.File, ready chan struct{}) {
	defer close(p.ended)
	defer out.Close() // it was only read from
	lines, said := bufio.NewScanner(out), false
	for lines.Scan() {
		fmt.Fprintln(p.log, p.name, lines.Text()) // for people
		if !said && strings.Contains(lines.Text(), p.ready) {
			said = true
			close(ready)
		}
	}
	_ = p.cmd.Wait() // ProcessState says how it ended
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// ask asks it to end; stopped waits until it has, and is content where it has done so by itself.
func (p *process) ask() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *process) stopped() error {
	select {
	case <-p.ended:
	case <-time.After(startLimit):
		p.kill()
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s has not ended as it was asked to: %s", p.name, p.cmd.ProcessState)
	}
	return nil
}

func (p *process) stop() error { return errors.Join(p.ask(), p.stopped()) }

// pause stops it in the middle of what it does; resume lets it go on.
func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
