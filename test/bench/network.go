package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// networkEnv is set where the bench has a network of its own.
	networkEnv  = "SPOOL_BENCH_NETWORK"
	ownNetwork  = "own"
	receiveFile = "/proc/sys/net/ipv4/tcp_rmem"
	// receiveSizes are the least, the first, and the most bytes of a socket's receive buffer.
	receiveSizes = "4096 131072 131072"
)

// enclosed runs the bench in a network of its own, in which no socket receives ahead more than a little. Left to
// itself the kernel lets the buffers of a program that reads slower than the provider writes grow to megabytes
// each, and what the provider does to fill them is taken from the same processors. Where the machine does not
// permit it the bench runs all the same, and its report says so.
func enclosed(ctx context.Context, o options, args []string) error {
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
	cmd := exec.CommandContext(ctx, self, append(args, "--spool", o.spool)...)
	cmd.Env = append(os.Environ(), networkEnv+"="+ownNetwork)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = newNetwork()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: no network of its own:", err)
		return bench(ctx, o)
	}
	err = cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return errors.New("the process in its own network failed") // and has said why
	}
	return errors.Join(err, context.Cause(ctx))
}

// newNetwork has a process begin in a network namespace of its own. Who is not root may do so as the root of a user
// namespace.
func newNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return attr
}

// settleNetwork makes a new network namespace usable, and its receive buffers small.
func settleNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	loopback.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("network: raise lo: %w", err)
	}
	if err := os.WriteFile(receiveFile, []byte(receiveSizes), 0); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}
