//go:build !linux

package main

import (
	"errors"
	"syscall"
)

// newNetwork is nil: this system gives no process a network of its own.
func newNetwork() *syscall.SysProcAttr { return nil }

// settleNetwork is never called here, as no process has such a network.
func settleNetwork() error { return errors.ErrUnsupported }
