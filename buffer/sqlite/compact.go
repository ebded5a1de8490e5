package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Compacted is the size of a log's file before and after, in bytes.
type Compacted struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Compact gives the room of what was deleted back to the file system. No process may have the folder
// open (ErrInUse). It writes the log anew beside the old one, which takes as much room again as is in
// use, checks it and puts it in the old one's place. A crash leaves the one or the other, whole, and
// perhaps a file that ends in .partial.
func Compact(ctx context.Context, dir string, told Progress) (Compacted, error) {
	file := filepath.Join(dir, fileName)
	if ok, err := exists(file); err != nil || !ok { // else the folder would be created
		return Compacted{}, errors.Join(err, fmt.Errorf("compact: no log at %s", file))
	}
	held, err := openFolder(dir)
	if err != nil {
		return Compacted{}, fmt.Errorf("compact: %w", err)
	}
	defer held.close() // nothing in it is waited for
	c, err := compact(ctx, held.file(), told)
	if err != nil {
		return Compacted{}, fmt.Errorf("compact %s: %w", dir, err)
	}
	return c, nil
}

func compact(ctx context.Context, file string, told Progress) (c Compacted, err error) {
	if err := refuseNewer(ctx, file); err != nil {
		return c, err
	}
	partial, err := partialOf(file)
	if err != nil {
		return c, err
	}
	defer os.Remove(partial) // it is gone where all went well
	if c.Before, err = rewrite(ctx, file, partial, told); err != nil {
		return c, err
	}
	if _, err := verify(ctx, partial); err != nil {
		return c, fmt.Errorf("the new file: %w", err)
	}
	info, err := os.Stat(partial)
	if err != nil {
		return c, err
	}
	c.After = info.Size()
	// The write-ahead log went with the last connection. One that is still here belongs to the old file.
	if ok, err := exists(file + "-wal"); err != nil || ok {
		return c, errors.Join(err, errors.New("another process reads the log: try again when it has ended"))
	}
	if err := errors.Join(flush(partial), os.Rename(partial, file)); err != nil {
		return c, err
	}
	return c, flush(filepath.Dir(file))
}

// rewrite writes the log, and what is in its write-ahead log, to an empty file, and returns how large
// it was.
func rewrite(ctx context.Context, file, to string, told Progress) (before int64, err error) {
	db := openPool(file, 1, fixerPragmas("full"))
	defer func() { err = errors.Join(err, db.Close()) }()
	var busy, pages, copied int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied); err != nil {
		return 0, err
	}
	r, err := room(ctx, db)
	if err != nil {
		return 0, err
	}
	defer grows(to, r.Bytes-r.Reusable, told)()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return r.Bytes, err
}

// growthPause is the time between two looks at a file that grows.
const growthPause = 100 * time.Millisecond

// grows tells how a file grows, until stop is called.
func grows(file string, total int64, told Progress) (stop func()) {
	if told == nil {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(growthPause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				told(total, total)
				return
			case <-tick.C:
				if info, err := os.Stat(file); err == nil {
					told(min(info.Size(), total), total)
				}
			}
		}
	}()
	return func() { close(quit); <-ended }
}
