package sqlite

import "syscall"

// networks are the file systems that other machines may write to as well, by the magic number of statfs(2).
var networks = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xfe534d42: "SMB2",
	0xff534d42: "CIFS",
	0x5346414f: "AFS",
	0x00c36400: "Ceph",
	0x01021997: "9P",
}

// Network names the network file system that dir is on; empty for any other, or where nobody knows.
func Network(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return ""
	}
	return networks[uint32(s.Type)]
}
