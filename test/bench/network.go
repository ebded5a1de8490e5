package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	// networkEnv is set where the bench has a network of its own.
	networkEnv = "SPOOL_BENCH_NETWORK"
	ownNetwork = "own"
	// noNetwork is the status of a bench that was to have one, and has measured nothing without it.
	noNetwork = 3
)

// exitStatus is the status of a process that has said itself why it ended.
type exitStatus int

// Error implements error.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// enclosed measures in a network of its own, in which no socket receives ahead more than a little. Left to itself
// the kernel lets the buffers of a program that reads slower than the provider writes grow to megabytes each, and
// what the provider does to fill them is taken from the same processors. Where the machine does not permit it the
// bench measures all the same, and its report says so. args are the bench's own.
func enclosed(ctx context.Context, o options, args []string, measure func(context.Context, options) error) error {
	if isEnclosed() {
		if err := settleNetwork(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: no network of its own:", err)
			return exitStatus(noNetwork)
		}
		return measure(ctx, o)
	}
	dir, err := os.MkdirTemp(o.data, "spool-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.spool == "" { // here, where modules can still be fetched
		o.spool = filepath.Join(dir, "spool")
		if err := buildSpool(ctx, o.spool); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := enclose(ctx, self, slices.Concat(args, []string{"--spool", o.spool})); !errors.Is(err, exitStatus(noNetwork)) {
		return err
	}
	return measure(ctx, o)
}

// isEnclosed says whether this process was started in a network of its own.
func isEnclosed() bool { return os.Getenv(networkEnv) == ownNetwork }

// enclose runs a program in a network of its own. Where it ends by itself without success the error is its
// exitStatus, which is noNetwork where the machine does not permit such a network.
func enclose(ctx context.Context, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), networkEnv+"="+ownNetwork)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its own processes
	err := errors.ErrUnsupported
	if cmd.SysProcAttr = newNetwork(); cmd.SysProcAttr != nil {
		err = cmd.Start()
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Fprintln(os.Stderr, "bench: no network of its own:", err)
		return exitStatus(noNetwork)
	}
	err = cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return exitStatus(ended.ExitCode())
	}
	return err
}
