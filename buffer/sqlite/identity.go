package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// errReplaced: what is written would go to a file that nobody finds again, or into one that is not the
// log that memory knows.
var errReplaced = errors.New("the log was deleted or replaced under the process")

// identity knows the files that were opened from any others of their names. SQLite itself does not look:
// it would go on writing to a file that was deleted.
type identity struct {
	path    string
	db, wal os.FileInfo

	size atomic.Int64 // of the file, when it was last known to be the log
}

// identify takes the identity of the log at path, which is open and has its write-ahead log.
func identify(path string) (*identity, error) {
	db, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	wal, err := os.Stat(path + "-wal")
	return &identity{path: path, db: db, wal: wal}, err
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
	size, err := i.look()
	if err != nil {
		return err
	}
	if size < i.size.Load() {
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
	return db.Size(), nil
}
