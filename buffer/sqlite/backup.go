package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Backup copies the log in dir, of a running process or a stopped one, to a file that must not exist:
// one state of it, checked and on disk. With keys it checks what they have encrypted too. It changes nothing in
// dir. No commit waits for it; while it
// lasts the write-ahead log grows.
func Backup(ctx context.Context, dir, file string, told Progress, keys ...Key) (Copied, error) {
	if ok, err := exists(file); err != nil || ok {
		return Copied{}, errors.Join(err, fmt.Errorf("backup %s: is there already", file))
	}
	from := filepath.Join(dir, fileName)
	if ok, err := exists(from); err != nil || !ok {
		return Copied{}, errors.Join(err, fmt.Errorf("backup: no log at %s", from))
	}
	release, err := stay(dir)
	if err != nil {
		return Copied{}, fmt.Errorf("backup %s: %w", dir, err)
	}
	defer release()
	c, err := copyTo(ctx, from, file, told, keys)
	if err != nil {
		return Copied{}, fmt.Errorf("backup %s: %w", dir, err)
	}
	return c, nil
}

// stay keeps a stopped folder stopped until release is called: its file is read as it stands then. A
// running one needs no help, but its write-ahead log: a process that has none yet is just starting.
func stay(dir string) (release func(), err error) {
	lock, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil // no process has ever held it: a copy without its lock
	}
	if err != nil {
		return nil, err
	}
	release = func() { _ = lock.Close() } // the kernel's lock goes with it
	// It can be shared with those that run, and with other backups, but not with one that is just starting.
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return release, nil
	}
	release()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if ok, err := exists(filepath.Join(dir, fileName+"-wal")); err != nil || !ok {
		return nil, errors.Join(err, errors.New("its process is just starting or stopping: try again"))
	}
	return func() {}, nil
}

// unimportant are the names that a folder may hold and still be empty.
var unimportant = []string{lockName, "lost+found"}

// Restore copies the log in file, which a backup has made, into dir, which must be missing or empty. The
// log is checked before and after, with keys as Backup does. Runs that were live in it are interrupted when it is opened.
func Restore(ctx context.Context, file, dir string, told Progress, keys ...Key) (Copied, error) {
	if _, err := verify(ctx, file, keys); err != nil {
		return Copied{}, fmt.Errorf("restore %s: %w", file, err)
	}
	held, err := openEmpty(dir)
	if err != nil {
		return Copied{}, fmt.Errorf("restore into %s: %w", dir, err)
	}
	defer held.close() // nothing in it is waited for
	c, err := copyTo(ctx, file, held.file(), told, keys)
	if err != nil {
		return Copied{}, fmt.Errorf("restore into %s: %w", dir, err)
	}
	return c, nil
}

// openEmpty takes a folder that has nothing in it, and leaves any other as it is.
func openEmpty(dir string) (*folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !slices.Contains(unimportant, e.Name()) {
			return nil, fmt.Errorf("the folder is not empty: it has %s", e.Name())
		}
	}
	return openFolder(dir)
}
