package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const turnName = "turn.lock"

// turn is whose turn it is to write, of the processes that have the log open. SQLite's own lock is what
// keeps them apart, but who waits for that looks now and then whether it is free, and a busy neighbour
// takes it again before. Here the kernel wakes who waits. It costs two calls where nobody does.
type turn struct{ file *os.File }

func openTurn(dir string) (turn, error) {
	f, err := os.OpenFile(filepath.Join(dir, turnName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return turn{}, fmt.Errorf("turn: %w", err)
	}
	return turn{f}, nil
}

// take waits for the turn. Where it fails there is none, and no harm in that.
func (t turn) take() {
	for syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX) == syscall.EINTR {
	}
}

func (t turn) give() { _ = syscall.Flock(int(t.file.Fd()), syscall.LOCK_UN) }

func (t turn) close() error { return t.file.Close() }
