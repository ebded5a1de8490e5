package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	// handoverVar names the listeners whose descriptors a process gets from the one before it, from the first
	// that is no standard stream on; behind them comes the pipe on which it says that it is ready.
	handoverVar = "SPOOL_HANDOVER"
	firstFile   = 3

	// upgradePatience is how long a new process may take until it is ready: it may have a log to migrate.
	upgradePatience = time.Minute

	readyWord  = "ready"
	mostReason = 4 << 10 // bytes of what it says otherwise
)

// successor is how this process starts the one after it: by the path by which it was started itself, where
// the file may be another by then.
type successor struct {
	program   string
	args      []string
	listeners map[string]net.Listener // by the names of sockets
}

// program is the path by which this process was started.
func program() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return os.Executable()
	}
	return filepath.Abs(path)
}

// start starts the new process with copies of the listeners, and returns its number once it is ready. Where
// it does not get so far it has ended when start returns, and nothing has changed.
func (s successor) start(ctx context.Context, patience time.Duration) (pid int, err error) {
	if os.Getpid() == 1 {
		return 0, errors.New("this is process 1, whose end would end the new one: start that beside it, with --beside")
	}
	cmd := exec.Command(s.program, s.args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var names []string
	defer func() {
		for _, f := range cmd.ExtraFiles {
			_ = f.Close() // the new process has its own, or needs none
		}
	}()
	for name, l := range s.listeners {
		f, err := descriptor(l)
		if err != nil {
			return 0, fmt.Errorf("listener %s: %w", name, err)
		}
		names, cmd.ExtraFiles = append(names, name), append(cmd.ExtraFiles, f)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer told.Close() // it was only read from
	cmd.ExtraFiles = append(cmd.ExtraFiles, tell)
	cmd.Env = append(os.Environ(), handoverVar+"="+strings.Join(names, ","))
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_ = tell.Close() // only the new process holds it now: its end is the end of the pipe
	word := make(chan string, 1)
	go func() { word <- readWord(told) }()
	select {
	case w := <-word:
		if w == readyWord {
			go func() { _ = cmd.Wait() }() // it outlives this process; until then somebody must bury it
			return cmd.Process.Pid, nil
		}
		_ = cmd.Process.Kill() // it is ending, or is none of ours
		return 0, reasonOf(w, cmd.Wait())
	case <-time.After(patience):
		err = fmt.Errorf("not ready after %s", patience)
	case <-ctx.Done():
		err = errors.New("told to stop meanwhile")
	}
	_ = cmd.Process.Kill() // it may have ended just now
	_ = cmd.Wait()         // killed
	return 0, err
}

// readWord is the line that a new process says, or as much as it says of one.
func readWord(r io.Reader) string {
	line, _ := bufio.NewReader(io.LimitReader(r, mostReason)).ReadString('\n') // an empty one says it
	return strings.TrimSpace(line)
}

func reasonOf(said string, exit error) error {
	switch {
	case said != "":
		return errors.New(said)
	case exit != nil:
		return fmt.Errorf("it ended without a word: %w", exit)
	}
	return errors.New("it ended without a word")
}

// descriptor is a copy of a listener's descriptor. It does not wait in the kernel, and must not become one that
// does: the setting is the socket's, for all processes, and an Accept that waits there does not hear of Close.
func descriptor(l net.Listener) (*os.File, error) {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T has no descriptor", l)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	err = raw.Control(func(own uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, failed = syscall.Dup(int(own)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), l.Addr().String()), nil
}

// handedOver takes what the process before this one hands over.
func handedOver(list string) (s sockets, err error) {
	if err := os.Unsetenv(handoverVar); err != nil { // the next one gets its own
		return s, err
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		f := os.NewFile(uintptr(firstFile+i), name)
		l, err := net.FileListener(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return s, fmt.Errorf("%s: %s: %w", handoverVar, name, err)
		}
		if name == adminSocket {
			s.admin = l
		} else {
			s.service = l
		}
	}
	syscall.CloseOnExec(firstFile + len(names))
	s.waits = os.NewFile(uintptr(firstFile+len(names)), readyWord)
	return s, nil
}

// tell ends the wait of the process before this one, where one waits: with nil this one is ready.
func (s sockets) tell(err error, log *zap.Logger) {
	if s.waits == nil {
		return
	}
	word := readyWord
	if err != nil {
		word = oneLine(err)
	}
	_, err = s.waits.WriteString(word + "\n")
	if err = errors.Join(err, s.waits.Close()); err != nil {
		log.Warn("the process before does not listen", zap.Error(err)) // it has timed out, and ends this one
	}
}
