package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit = 60 * time.Second // for a server to say where it listens
	dialEach   = 10 * time.Millisecond
	stopLimit  = 2 * time.Second // for one that was asked to end; nobody needs what it would still store
)

// child is a server that the bench has started, and ends by its own handle.
type child struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has ended
	words  *words
	addr   string
}

// start starts a program and returns once it has said where it listens.
func start(ctx context.Context, program string, args ...string) (*child, error) {
	c, err := begin(ctx, program, args...)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(startLimit)
	defer late.Stop()
	select {
	case c.addr = <-c.words.address:
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("%s: %s: %s", c, c.cmd.ProcessState, c.words.last)
	case <-late.C:
		c.stop()
		return nil, fmt.Errorf("%s did not say where it listens: %s", c, c.words.last)
	}
}

// startOn starts a program that does not say so, and returns once it answers on address.
func startOn(ctx context.Context, address, program string, args ...string) (*child, error) {
	c, err := begin(ctx, program, args...)
	if err != nil {
		return nil, err
	}
	for late := time.Now().Add(startLimit); time.Now().Before(late); {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close() // it was a question
			return c, nil
		}
		select {
		case <-c.ended:
			return nil, fmt.Errorf("%s: %s: %s", c, c.cmd.ProcessState, c.words.last)
		case <-time.After(dialEach):
		}
	}
	c.stop()
	return nil, fmt.Errorf("%s does not answer on %s: %s", c, address, c.words.last)
}

func begin(ctx context.Context, program string, args ...string) (*child, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &child{cancel: cancel, ended: make(chan struct{}), words: &words{address: make(chan string, 1)}}
	c.cmd = exec.CommandContext(ctx, program, args...)
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SPOOL_") })
	c.cmd.Stderr = c.words
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = stopLimit // then it is killed
	if err := c.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // ProcessState says how it ended
	}()
	return c, nil
}

func (c *child) String() string { return strings.Join(c.cmd.Args, " ") }

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop ends the program and waits until it has ended.
func (c *child) stop() {
	c.cancel()
	<-c.ended
}

// kill ends the program as kill -9 does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.ended
	c.cancel()
}

// words takes what a server writes: lines of JSON, one of which has its address.
type words struct {
	address chan string // holds one
	said    bool
	line    []byte
	last    []byte // the last whole line, for a message; read after the end alone
}

// maxLine is where a line is given up.
const maxLine = 64 << 10

// Write implements io.Writer; it never fails.
func (w *words) Write(p []byte) (int, error) {
	n := len(p)
	for {
		before, after, ok := bytes.Cut(p, []byte{'\n'})
		if !ok {
			break
		}
		w.hear(append(w.line, before...))
		w.line, p = w.line[:0], after
	}
	if len(w.line)+len(p) <= maxLine {
		w.line = append(w.line, p...)
	}
	return n, nil
}

func (w *words) hear(line []byte) {
	w.last = append(w.last[:0], line...)
	if w.said {
		return
	}
	var a announcement
	if json.Unmarshal(line, &a) == nil && a.Address != "" {
		w.said = true
		w.address <- a.Address
	}
}
