package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// The prelude of an AWS event stream message: its whole length, the length of its headers, and the
// CRC32 of these eight bytes, all big-endian. A message ends with another CRC32.
const (
	preludeSize    = 12
	preludeCRC     = 8  // where in the prelude its CRC32 stands
	minMessageSize = 16 // no headers, no payload
)

// messages cuts application/vnd.amazon.eventstream by the length that each message begins with.
// The prelude's checksum is verified before its length is believed; the message's own checksum is
// for its reader.
type messages struct {
	limit int // bytes of a message; a longer one is refused before it has come
}

func (m messages) cut(b []byte) (int, error) {
	if len(b) < preludeSize {
		return 0, nil
	}
	total := binary.BigEndian.Uint32(b)
	sum := binary.BigEndian.Uint32(b[preludeCRC:])
	switch {
	case total < minMessageSize || crc32.ChecksumIEEE(b[:preludeCRC]) != sum:
		return 0, ErrCorrupt
	case uint64(total) > uint64(m.limit):
		return 0, ErrTooLarge
	case uint64(total) > uint64(len(b)):
		return 0, nil
	}
	return int(total), nil
}

func (messages) whole([]byte, bool) bool { return false }
