package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Why a folder is refused. Nothing in it was touched.
var (
	// ErrInUse: another live process has the folder open.
	ErrInUse = errors.New("in use by another process")
	// ErrNewer: the log was written by a newer version of the program.
	ErrNewer = errors.New("written by a newer version")
)

const (
	fileName = "spool.db"
	lockName = "spool.lock"
)

// folder is a data folder that this process holds. The lock is the kernel's: it goes with the
// process, however that ends.
type folder struct {
	path string
	lock *os.File
}

// openFolder takes the folder, or says in one line why not.
func openFolder(path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("folder %s cannot be created: %w", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be written: %w", path, err)
	}
	f := &folder{path: path, lock: lock}
	if err := f.take(); err != nil {
		_ = lock.Close() // nothing was written to it
		return nil, fmt.Errorf("folder %s: %w", path, err)
	}
	return f, nil
}

func (f *folder) take() error {
	err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w%s", ErrInUse, f.holder())
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	// The number is for people who look for the holder; the lock does not depend on it.
	if err := f.lock.Truncate(0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if _, err := f.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// holder names the process that has the lock, where it said who it is.
func (f *folder) holder() string {
	buf := make([]byte, 32)
	n, _ := f.lock.ReadAt(buf, 0) // io.EOF is the usual case, and without a name the refusal is as good
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%d)", pid)
}

func (f *folder) file() string { return filepath.Join(f.path, fileName) }

// close gives the folder up. The lock file stays: removing it would let two processes hold a lock of
// the same name.
func (f *folder) close() error { return f.lock.Close() }
