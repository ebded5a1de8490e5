package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long anything may take before it is given up as hung.
const patience = time.Minute

// service is a Spool in its lives that follow each other. All of them write to one log.
type service struct {
	path  string // by which each life is started: the file is another for each
	from  string // what it is a copy of
	url   string
	data  string
	pid   int // of the life that serves
	first *exec.Cmd
	said  chan line // what is waited for, of all that they say
	over  chan struct{}
}

// line is a line of a log.
type line struct {
	Msg     string
	Address string
	Error   string
	Pid     int
}

// start starts the first life, and returns when it serves.
func start(ctx context.Context, o options, provider string) (*service, error) {
	s := &service{
		path: filepath.Join(o.dir, "spool"), from: o.binary, data: filepath.Join(o.dir, "data"),
		said: make(chan line, 1<<10), over: make(chan struct{}),
	}
	if err := s.install(s.from); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.first = exec.Command(s.path, "serve", "--listen", "127.0.0.1:0", "--data", s.data, "--provider", "openai="+provider)
	s.first.Env, s.first.Stderr = []string{}, in
	if err := errors.Join(s.first.Start(), in.Close()); err != nil {
		return nil, err
	}
	s.pid = s.first.Process.Pid
	go s.listen(out, o.log)
	l, err := s.await(ctx, "serving")
	s.url = "http://" + l.Address
	return s, err
}

// listen reads until the last life has ended.
func (s *service) listen(out *os.File, log io.Writer) {
	defer close(s.over)
	defer out.Close() // it was only read from
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text()) // for people; nothing depends on it
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		switch l.Msg {
		case "serving", "handed over", "upgrade failed, nothing has changed":
			s.said <- l
		}
	}
}

func (s *service) await(ctx context.Context, msg string) (line, error) {
	hung := time.After(patience)
	for {
		select {
		case l := <-s.said:
			if l.Msg == msg {
				return l, nil
			}
		case <-s.over:
			return line{}, fmt.Errorf("it has ended without %q", msg)
		case <-hung:
			return line{}, fmt.Errorf("it does not say %q", msg)
		case <-ctx.Done():
			return line{}, ctx.Err()
		}
	}
}

// install puts a copy of a file in the place of the program, as package managers do.
func (s *service) install(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(s.path+".new", b, 0o700), os.Rename(s.path+".new", s.path))
}

// upgrade replaces the life that serves by one of the file, and returns the number of the former.
func (s *service) upgrade(ctx context.Context) (old int, err error) {
	if err := s.install(s.from); err != nil {
		return 0, err
	}
	old = s.pid
	if err := syscall.Kill(old, syscall.SIGUSR2); err != nil {
		return 0, err
	}
	l, err := s.await(ctx, "handed over")
	s.pid = l.Pid
	return old, err
}

// refuse has the life that serves try a program that does not start, and is content when it says why.
func (s *service) refuse(ctx context.Context) error {
	broken := filepath.Join(filepath.Dir(s.path), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		return err
	}
	if err := errors.Join(s.install(broken), syscall.Kill(s.pid, syscall.SIGUSR2)); err != nil {
		return err
	}
	l, err := s.await(ctx, "upgrade failed, nothing has changed")
	if err == nil && l.Error == "" {
		err = errors.New("it does not say why")
	}
	return err
}

// kill ends a life as kill -9 does.
func (s *service) kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// stop ends the life that serves, waits for all, and checks what they leave behind.
func (s *service) stop(ctx context.Context) error {
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.over:
	case <-time.After(patience):
		return errors.New("it does not stop")
	}
	if err := s.first.Wait(); err != nil {
		return fmt.Errorf("the first life: %w", err)
	}
	if out, err := exec.CommandContext(ctx, s.from, "check", s.data).CombinedOutput(); err != nil {
		return fmt.Errorf("spool check: %w\n%s", err, out)
	}
	return nil
}

// abandon ends whatever is left.
func (s *service) abandon() {
	_ = s.first.Process.Kill()               // it may have ended already
	_ = syscall.Kill(s.pid, syscall.SIGKILL) // as well
}
