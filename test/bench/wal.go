package main

import (
	"encoding/binary"
	"io"
	"os"
	"time"
)

// walEach is short against the time that a write-ahead log takes to fill up: what is written between
// the last look and its reset is missed.
const walEach = time.Millisecond

// walFrame is the header of each page in the log.
const walFrame = 24

// walMeter adds up what SQLite writes to a write-ahead log, which begins again at its start after a
// checkpoint. The file's index, shared memory, says how far it is (https://sqlite.org/walformat.html,
// section 2.1).
type walMeter struct {
	done  chan struct{}
	total chan int64
}

func watchWAL(index string) *walMeter {
	m := &walMeter{make(chan struct{}), make(chan int64)}
	go m.watch(index)
	return m
}

// stop ends the watch and returns the bytes written.
func (m *walMeter) stop() int64 {
	close(m.done)
	return <-m.total
}

func (m *walMeter) watch(index string) {
	var sum int64
	last, _ := readWAL(index) // there is none before the first write
	tick := time.NewTicker(walEach)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-m.done:
			over = true
		}
		if now, ok := readWAL(index); ok {
			sum += now.since(last)
			last = now
		}
	}
	m.total <- sum
}

// walState is how far a log is: pages of it since it began for the salt-th time.
type walState struct {
	salt  uint64
	pages int64
	size  int64 // of a page
}

// since is the bytes from an earlier state to this one.
func (s walState) since(e walState) int64 {
	pages := s.pages
	if s.salt == e.salt {
		pages = max(0, pages-e.pages)
	}
	return pages * (s.size + walFrame)
}

// readWAL reads the index's header, in the machine's own byte order. One that is being written, and so
// differs from its copy, is not taken.
func readWAL(index string) (s walState, ok bool) {
	const size = 48
	f, err := os.Open(index)
	if err != nil {
		return s, false
	}
	defer f.Close()
	var b [2 * size]byte
	if _, err := io.ReadFull(f, b[:]); err != nil || [size]byte(b[:size]) != [size]byte(b[size:]) {
		return s, false
	}
	s.pages = int64(binary.NativeEndian.Uint32(b[16:]))
	s.salt = binary.NativeEndian.Uint64(b[32:])
	if s.size = int64(binary.NativeEndian.Uint16(b[14:])); s.size == 1 {
		s.size = 64 << 10
	}
	return s, true
}
