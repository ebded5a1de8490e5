package main

import (
	"syscall"

	"github.com/spool-dev/spool/buffer/sqlite"
)

// What adjtimex(2) says of a clock that nobody disciplines.
const (
	clockError    = 5    // TIME_ERROR, the state
	unsynchronous = 0x40 // STA_UNSYNC, in the status
)

func clockFindings() []finding {
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	switch {
	case err != nil:
		return []finding{found(warn, "clock", "cannot be asked: %v", err)}
	case state == clockError || t.Status&unsynchronous != 0:
		return []finding{found(warn, "clock", "nothing keeps it: TTLs, run tokens and signatures go by it; run chrony or systemd-timesyncd, here or on the host")}
	}
	return []finding{found(good, "clock", "is kept, to within %d ms", t.Maxerror/1000)}
}

// fileSystems are those that need a word, by the magic number of statfs(2), besides those on which the
// service does not start.
var fileSystems = map[uint32]struct{ name, why string }{
	0x65735546: {"FUSE", "its flushes and locks may not be what they seem"},
	0x01021994: {"tmpfs", "it is memory: all is gone with the machine"},
	0x794c7630: {"overlayfs", "it goes with its container: mount a volume"},
}

func fileSystem(place string) finding {
	if name := sqlite.Network(place); name != "" {
		return found(fail, "file system", "%s: locks and SQLite's shared memory need a local file system", name)
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(place, &s); err != nil {
		return found(warn, "file system", "%v", err)
	}
	if k, ok := fileSystems[uint32(s.Type)]; ok {
		return found(warn, "file system", "%s: %s", k.name, k.why)
	}
	return found(good, "file system", "local (type %#x)", uint32(s.Type))
}
