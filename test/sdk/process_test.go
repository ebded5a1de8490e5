package sdk

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	startTime = 30 * time.Second // for a process to answer its first request
	stopTime  = 10 * time.Second // for it to end when it was asked to
	lookAgain = 20 * time.Millisecond
)

// process is a program that was started for a test.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once it has ended
}

// start starts a program, returns it when a URL of its answers 200, and ends it with the test. What it
// prints is in the artifacts.
func start(t *testing.T, name, ready, program string, args ...string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.ArtifactDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })

	p := &process{cmd: exec.Command(program, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // whoever needed the process notices that it has gone
		close(p.exited)
	}()
	t.Cleanup(p.stop)

	if !p.answers(t, ready) {
		printed, _ := os.ReadFile(log.Name()) // without it the failure is merely less clear
		t.Fatalf("%s does not answer at %s\n%s", name, ready, printed)
	}
	return p
}

// stop asks the process to end, and kills it if it will not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended already
	select {
	case <-p.exited:
	case <-time.After(stopTime):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// answers waits until the URL answers 200; false if the process ends or takes too long.
func (p *process) answers(t *testing.T, url string) bool {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	timeout := time.After(startTime)
	for {
		if resp, err := get(t.Context(), url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-again.C:
		case <-p.exited:
			return false
		case <-timeout:
			return false
		}
	}
}

// freePort returns a port of the loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
