package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"
)

// Progress hears how much of a long work is done, in bytes. It is called often, by one goroutine; nil
// hears nothing.
type Progress func(done, total int64)

// Copied is what a backup or a restore has made.
type Copied struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	Schema int64  `json:"schema"`
	Runs   int64  `json:"runs"`
	Live   int64  `json:"live"` // runs that were live then: they are interrupted when the copy is started
}

// backer is what the driver's connection can do besides.
type backer interface {
	NewBackup(to string) (*driver.Backup, error)
}

// copyPages is what is copied between two looks at the context.
const copyPages = 1 << 20 / pageSize

// copyLog copies the log from, in one snapshot that no writer waits for, to a file that is empty or
// missing, and flushes it. The copy is one file: what was in the write-ahead log is in it.
func copyLog(ctx context.Context, from, to string, told Progress) error {
	db, err := openReadOnly(from)
	if err != nil {
		return err
	}
	defer db.Close() // it was only read from
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // likewise
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // likewise
	// The first look takes the snapshot. Without it each step would take one of its own, and begin the
	// copy anew whenever another process has committed.
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(new(int)); err != nil {
		return err
	}
	err = c.Raw(func(conn any) error { return copySteps(ctx, conn.(backer), to, told) })
	if err != nil {
		return err
	}
	return flush(to)
}

func copySteps(ctx context.Context, from backer, to string, told Progress) error {
	b, err := from.NewBackup(dsn(to, []string{"synchronous(FULL)"}))
	if err != nil {
		return err
	}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, b.Finish())
		}
		if more, err = b.Step(copyPages); err != nil {
			return errors.Join(err, b.Finish())
		}
		if told != nil {
			told(int64(b.PageCount()-b.Remaining())*pageSize, int64(b.PageCount())*pageSize)
		}
	}
	return b.Finish()
}

// copyTo copies a log to a name that is not taken, and only after the copy was checked: under another
// name until then. A crash leaves a file that ends in .partial, and nothing of the name.
func copyTo(ctx context.Context, from, to string, told Progress) (Copied, error) {
	partial, err := partialOf(to)
	if err != nil {
		return Copied{}, err
	}
	defer os.Remove(partial) // it is gone where all went well
	if err := copyLog(ctx, from, partial, told); err != nil {
		return Copied{}, err
	}
	c, err := verify(ctx, partial)
	if err != nil {
		return Copied{}, fmt.Errorf("the copy: %w", err)
	}
	c.File = to
	return c, publish(partial, to)
}

// partialOf makes an empty file beside the one that it is to become.
func partialOf(to string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.partial")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// publish gives a file its name, which must not be taken.
func publish(partial, to string) error {
	claim, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(claim.Close(), os.Rename(partial, to)); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return flush(filepath.Dir(to))
}

// flush puts a file, or the names in a folder, on disk.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// verify checks a log that nobody has open, and counts what is in it. One of an older version is
// checked for damage alone: its invariants are those of its version.
func verify(ctx context.Context, file string) (Copied, error) {
	db, err := openReadOnly(file)
	if err != nil {
		return Copied{}, err
	}
	defer db.Close() // it was only read from
	have, want, err := versions(ctx, db)
	switch {
	case err != nil:
		return Copied{}, err
	case have > want:
		return Copied{}, fmt.Errorf("%w: its schema is %d, this program knows %d", ErrNewer, have, want)
	case have == 0:
		return Copied{}, errors.New("is no log: it has no schema")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return Copied{}, err
	}
	defer tx.Rollback() // it has only read
	look := check
	if have < want {
		look = checkFile
	}
	broken, err := look(ctx, tx, file)
	if err != nil {
		return Copied{}, err
	}
	if len(broken) > 0 {
		return Copied{}, fmt.Errorf("%d broken, the first: %s", len(broken), broken[0])
	}
	return count(ctx, tx, Copied{Schema: have})
}

func count(ctx context.Context, tx *sql.Tx, c Copied) (Copied, error) {
	err := tx.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE ended IS NULL),
		(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) FROM runs`).Scan(&c.Runs, &c.Live, &c.Bytes)
	return c, err
}
