package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Why a folder is refused. Nothing in it was touched.
var (
	// ErrInUse: another live process has the folder open.
	ErrInUse = errors.New("in use by another process")
	// ErrNewer: the log was written by a newer version of the program.
	ErrNewer = errors.New("written by a newer version")
	// ErrNetwork: the folder is on a file system of other machines as well, on which neither locks nor
	// shared memory hold.
	ErrNetwork = errors.New("not on a local file system")
)

const (
	fileName = "spool.db"
	lockName = "spool.lock"
)

// joinPause is between two tries to join a folder whose process is just starting.
const joinPause = 20 * time.Millisecond

// folder is a data folder that this process holds: alone, or together with others that it lets in. The
// lock is the kernel's: it goes with the process, however that ends.
type folder struct {
	path string
	lock *os.File
}

// openFolder takes the folder for this process alone, or says in one line why not.
func openFolder(path string) (*folder, error) {
	return lockFolder(path, func(f *folder) error { return f.take(syscall.LOCK_EX) })
}

// joinFolder takes the folder together with those who have it already, and waits for one of them that is
// just starting.
func joinFolder(ctx context.Context, path string) (*folder, error) {
	return lockFolder(path, func(f *folder) error {
		for {
			err := f.take(syscall.LOCK_SH)
			if !errors.Is(err, ErrInUse) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(joinPause):
			}
		}
	})
}

func lockFolder(path string, take func(*folder) error) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("folder %s cannot be created: %w", path, err)
	}
	if name := Network(path); name != "" {
		return nil, fmt.Errorf("folder %s: %w: %s", path, ErrNetwork, name)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be written: %w", path, err)
	}
	f := &folder{path: path, lock: lock}
	if err := take(f); err != nil {
		_ = lock.Close() // nothing was written to it
		return nil, fmt.Errorf("folder %s: %w", path, err)
	}
	return f, nil
}

// share lets others join. While the kernel turns the one lock into the other, somebody else may take the
// folder: then it is theirs.
func (f *folder) share() error { return f.take(syscall.LOCK_SH) }

func (f *folder) take(how int) error {
	err := syscall.Flock(int(f.lock.Fd()), how|syscall.LOCK_NB)
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

// holder names the process that took the lock last, where it said who it is.
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
