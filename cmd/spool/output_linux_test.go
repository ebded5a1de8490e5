package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal is a pseudo-terminal: what is written to its one end is shown at the other.
func terminal(t *testing.T) (screen, end *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	var lock, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &lock, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	return screen, end
}

// A work whose end nobody can tell is seen to go on, by itself; one whose end is known is seen to come to it.
func TestProgress_IsSeenOnATerminal(t *testing.T) {
	screen, end := terminal(t)
	until := func(text string) {
		t.Helper()
		var seen strings.Builder
		for b := make([]byte, 1<<10); !strings.Contains(seen.String(), text); {
			n, err := screen.Read(b)
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
			seen.Write(b[:n])
		}
	}
	told, done := progress(end, "check", false)
	until("| check")
	until("/ check")
	told(1, 4)
	until("25%")
	done()
	if told, done := progress(&strings.Builder{}, "check", false); told != nil {
		t.Error("it is shown where there is no terminal")
	} else {
		done()
	}
}
