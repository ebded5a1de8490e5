package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// errReplaced: what is written would go to a file that nobody finds again, or into one that is not the
// log that memory knows.
var errReplaced = errors.New("the log was deleted or replaced under the process")

// identity knows the file that was opened from any other of its name. SQLite itself does not look: it
// would go on writing to a file that was deleted.
type identity struct {
	path string
	file *os.File // open as long as the log is: closing it before would drop SQLite's locks
	db   os.FileInfo
	wal  os.FileInfo

	counter atomic.Uint32 // the highest that was seen
}

// identify takes the identity of the log at path, which is open and has its write-ahead log.
func identify(path string) (*identity, error) {
	i := &identity{path: path}
	var err error
	if i.file, err = os.Open(path); err != nil {
		return nil, err
	}
	i.db, err = i.file.Stat()
	if err == nil {
		i.wal, err = os.Stat(path + "-wal")
	}
	if err == nil {
		err = i.newer()
	}
	if err != nil {
		return nil, errors.Join(err, i.file.Close())
	}
	return i, nil
}

// present returns an error where the log is not the one that was opened. It is asked before each
// transaction, which costs a thousandth of its flush.
func (f *folder) present() error {
	i := f.log
	if i == nil { // not open yet
		return nil
	}
	for path, want := range map[string]os.FileInfo{i.path: i.db, i.path + "-wal": i.wal} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", errReplaced, err)
		}
		if !os.SameFile(info, want) {
			return fmt.Errorf("%w: %s is another file", errReplaced, path)
		}
	}
	return i.newer()
}

// newer looks at the file's change counter (https://sqlite.org/fileformat.html, 1.3.7), which whoever
// copies a log back in place takes to an earlier value.
func (i *identity) newer() error {
	var header [28]byte
	if _, err := i.file.ReadAt(header[:], 0); err != nil {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	now := binary.BigEndian.Uint32(header[24:])
	for {
		seen := i.counter.Load()
		if now < seen {
			return fmt.Errorf("%w: it is older than what was written", errReplaced)
		}
		if now == seen || i.counter.CompareAndSwap(seen, now) {
			return nil
		}
	}
}

func (i *identity) close() error {
	if i == nil {
		return nil
	}
	return i.file.Close()
}
