package main

import "syscall"

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

// fileSystems are those that need a word, by the magic number of statfs(2).
var fileSystems = map[uint32]struct {
	name  string
	level level
	why   string
}{
	0x6969:     {"NFS", fail, networked},
	0x517b:     {"SMB", fail, networked},
	0xfe534d42: {"SMB2", fail, networked},
	0xff534d42: {"CIFS", fail, networked},
	0x5346414f: {"AFS", fail, networked},
	0x00c36400: {"Ceph", fail, networked},
	0x01021997: {"9P", fail, networked},
	0x65735546: {"FUSE", warn, "its flushes and locks may not be what they seem"},
	0x01021994: {"tmpfs", warn, "it is memory: all is gone with the machine"},
	0x794c7630: {"overlayfs", warn, "it goes with its container: mount a volume"},
}

const networked = "the lock and SQLite's shared memory need a local file system"

func fileSystem(place string) finding {
	var s syscall.Statfs_t
	if err := syscall.Statfs(place, &s); err != nil {
		return found(warn, "file system", "%v", err)
	}
	if k, ok := fileSystems[uint32(s.Type)]; ok {
		return found(k.level, "file system", "%s: %s", k.name, k.why)
	}
	return found(good, "file system", "local (type %#x)", uint32(s.Type))
}
