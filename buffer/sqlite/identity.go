package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// errReplaced: what is written would go to a file that nobody finds again, or into one that is not the
// log that memory knows.
var errReplaced = errors.New("the log was deleted or replaced under the process")

// identity knows the files that were opened from any others of their names, and from others that were copied
// over them. SQLite itself does not look: it would go on writing to a file that was deleted.
//
// The file's first page has a stamp, its user_version, which goes up with each opening and each checkpoint: a copy
// of an earlier one has an earlier stamp.
type identity struct {
	path    string
	db, wal os.FileInfo
	file    *os.File // closed after all connections: to close it gives up the locks that they have

	size atomic.Int64 // of the file, when it was last known to be the log
	seen atomic.Pointer[sight]
}

// sight is the stamp of the file when it was last known to be the log, and when it had been changed then.
type sight struct {
	stamp   int32
	changed time.Time
}

// identify takes the identity of the log at path, which is open and has its write-ahead log.
func identify(path string) (*identity, error) {
	i := &identity{path: path}
	var err error
	if i.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if i.db, err = i.file.Stat(); err == nil {
		i.wal, err = os.Stat(path + "-wal")
	}
	var stamp int32
	if err == nil {
		stamp, err = i.stamp()
	}
	if err != nil {
		return nil, errors.Join(err, i.file.Close())
	}
	i.seen.Store(&sight{stamp, i.db.ModTime()})
	return i, nil
}

// restamp writes the next stamp, to be copied into the file by a checkpoint.
func (t *tx) restamp() error {
	var stamp int32
	if _, err := t.scan("PRAGMA user_version", nil, &stamp); err != nil {
		return fmt.Errorf("read stamp: %w", err)
	}
	t.wrote = true
	return t.w.conn.once(fmt.Sprintf("PRAGMA user_version = %d", stamp+1))
}

func (i *identity) close() error {
	if i == nil {
		return nil
	}
	return i.file.Close()
}

// present returns an error where the log is not the one that was opened. It is asked before each read of
// the file, which costs next to nothing. A log that is only read, from outside, has no identity.
func (i *identity) present() error {
	if i == nil {
		return nil
	}
	_, err := i.look()
	return err
}

// note takes the file's size after a checkpoint, which alone changes it.
func (i *identity) note() {
	if size, err := i.look(); err == nil { // else the next transaction tells
		i.size.Store(size)
	}
}

// same is present, for the writer. A file that has become smaller than what SQLite knows of it is a copy of
// an earlier day: what VACUUM makes smaller, it knows.
func (t *tx) same() error {
	i := t.w.s.file
	before := i.size.Load() // first: a checkpoint may make the file larger, and say so, after the look
	size, err := i.look()
	if err != nil {
		return err
	}
	if size < before {
		var pages int64
		if _, err := t.scan("PRAGMA page_count", nil, &pages); err != nil {
			return fmt.Errorf("size of the log: %w", err)
		}
		if size < pages*pageSize {
			return fmt.Errorf("%w: it is smaller than it was", errReplaced)
		}
	}
	i.size.Store(size)
	return nil
}

func (i *identity) look() (size int64, err error) {
	db, err := os.Stat(i.path)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errReplaced, err)
	}
	wal, err := os.Stat(i.path + "-wal")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errReplaced, err)
	}
	if !os.SameFile(db, i.db) || !os.SameFile(wal, i.wal) {
		return 0, fmt.Errorf("%w: it is another file", errReplaced)
	}
	if db.Size() < pageSize {
		return 0, fmt.Errorf("%w: it is empty", errReplaced)
	}
	if !i.follows(db.ModTime()) {
		return 0, fmt.Errorf("%w: another one was copied over it", errReplaced)
	}
	return db.Size(), nil
}

// follows reports whether a file that was changed at that time still is the log. Checkpoints alone change it,
// this process's and others'; they leave its stamp, or put a later one there: the difference is taken as the
// numbers wrap around.
func (i *identity) follows(changed time.Time) bool {
	seen := i.seen.Load()
	if changed.Equal(seen.changed) {
		return true
	}
	const looks = 3 // one may fall into the middle of a checkpoint's write
	for range looks {
		stamp, err := i.stamp()
		if err == nil && stamp-seen.stamp >= 0 {
			i.seen.Store(&sight{stamp, changed})
			return true
		}
	}
	return false
}

// stamp reads the first page's user_version (SQLite's file format, section 1.3).
func (i *identity) stamp() (int32, error) {
	var field [4]byte
	_, err := i.file.ReadAt(field[:], 60)
	return int32(binary.BigEndian.Uint32(field[:])), err
}
