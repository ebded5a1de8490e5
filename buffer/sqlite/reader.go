package sqlite

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Reader reads the log of a folder that belongs to another process, or to none. It changes nothing, and
// keeps nobody waiting. Each call sees what is committed then.
type Reader struct{ s *Store }

// OpenReader opens the log in dir for reading. It refuses one of another version.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	db, err := openReadOnly(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	have, want, err := versions(ctx, db)
	if err == nil && have != want {
		err = fmt.Errorf("%s: its schema is %d, this program reads %d", dir, have, want)
	}
	s := &Store{read: db, window: newWindow(0), queue: newQueue()}
	if err == nil {
		s.queries, err = prepare(ctx, db)
	}
	if err != nil {
		_ = db.Close() // it was only read from; the first error is the one to tell
		return nil, err
	}
	return &Reader{s}, nil
}

// Get is as Store's.
func (r *Reader) Get(ctx context.Context, id ulid.ULID) (buffer.Run, error) { return r.s.Get(ctx, id) }

// List is as Store's.
func (r *Reader) List(ctx context.Context, f buffer.Filter) iter.Seq2[buffer.Run, error] {
	return r.s.List(ctx, f)
}

// Read is as Store's.
func (r *Reader) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	return r.s.Read(ctx, id, from, max)
}

// Close ends the reading.
func (r *Reader) Close() error { return r.s.read.Close() }
