package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const ownersName = "owners"

// owners tells which owners of the log live: each holds a lock on a file whose name is its number. The
// lock is the kernel's, and goes with the process, however that ends.
type owners struct {
	dir string
	id  int64
	own *os.File
}

// claimOwner says that owner id lives. Its file gets its name when it is locked already: nobody finds one
// that is there and free, and takes its owner for dead.
func claimOwner(folder string, id int64) (*owners, error) {
	o := &owners{dir: filepath.Join(folder, ownersName), id: id}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("owner %d: %w", id, err)
	}
	fresh := o.path(id) + ".new"
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("owner %d: %w", id, err)
	}
	if err := errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Rename(fresh, o.path(id))); err != nil {
		return nil, errors.Join(fmt.Errorf("owner %d: %w", id, err), f.Close())
	}
	o.own = f
	return o, nil
}

func (o *owners) path(id int64) string { return filepath.Join(o.dir, strconv.FormatInt(id, 10)) }

// alive reports whether owner id lives. One that is not known to be dead lives.
func (o *owners) alive(id int64) (bool, error) {
	f, err := os.Open(o.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("owner %d: %w", id, err)
	}
	defer f.Close() // the lock, if it was to be had, goes with it
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return true, fmt.Errorf("owner %d: %w", id, err)
	}
	return false, nil
}

// others are the living ones but this.
func (o *owners) others() (map[int64]bool, error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, fmt.Errorf("owners: %w", err)
	}
	living := map[int64]bool{}
	for _, e := range entries {
		id, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || id == o.id {
			continue // one that is about to get its name has nothing yet
		}
		lives, err := o.alive(id)
		if err != nil {
			return nil, err
		}
		if lives {
			living[id] = true
		}
	}
	return living, nil
}

// bury removes the file of a dead owner. Numbers are never given again.
func (o *owners) bury(id int64) error {
	if err := os.Remove(o.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("owner %d: %w", id, err)
	}
	return nil
}

// leave is the end of this owner.
func (o *owners) leave() error { return errors.Join(o.bury(o.id), o.own.Close()) }
