package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	receiveFile = "/proc/sys/net/ipv4/tcp_rmem"
	// receiveSizes are the least, the first, and the most bytes of a socket's receive buffer.
	receiveSizes = "4096 131072 131072"
)

// newNetwork has a process begin in a network namespace of its own. Who is not root may do so in a user namespace,
// and stays who he is: a program that takes itself for root may want to become yet another user, which such a
// namespace does not have. All that the process needs to settle its network is one capability.
func newNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	return attr
}

// settleNetwork makes a new network namespace usable, and its receive buffers small.
func settleNetwork() error {
	inUse, err := interfacesInUse()
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if len(inUse) > 0 { // a variable that somebody has set must not change the machine
		return fmt.Errorf("network: %s is in use, so it is no new one", inUse[0].Name)
	}
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

// interfacesInUse are those that are up, but for the loopback. A new namespace may have some that are not.
func interfacesInUse() ([]net.Interface, error) {
	all, err := net.Interfaces()
	return slices.DeleteFunc(all, func(i net.Interface) bool {
		return i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0
	}), err
}
