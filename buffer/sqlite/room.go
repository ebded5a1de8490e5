package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"
)

// Room is what a log takes on disk, in bytes.
type Room struct {
	Bytes    int64 `json:"bytes"`    // of its file
	Reusable int64 `json:"reusable"` // of these, what was deleted: the next answers take it, or Compact gives it back
}

// About is what a look at a log tells without opening it for this process.
type About struct {
	Room
	Schema  int64     `json:"schema"`
	Program int64     `json:"program"` // the schema that this program knows
	Newest  time.Time `json:"newest"`  // when the newest run was created; zero where there is none

	Keys    map[string]int64 `json:"keys,omitempty"`    // the names of those without which runs cannot be read, and how many
	Lacking map[string]int64 `json:"lacking,omitempty"` // of them, those that are not among the given, or another one has the name
}

// Look tells about the log in dir, of a running process or a stopped one, and what of it the keys do not open. It
// creates and changes nothing.
func Look(ctx context.Context, dir string, keys ...Key) (a About, err error) {
	ring, err := newKeyring(keys)
	if err != nil {
		return a, err
	}
	db, err := openReadOnly(filepath.Join(dir, fileName))
	if err != nil {
		return a, err
	}
	defer db.Close() // it was only read from
	if a.Schema, a.Program, err = versions(ctx, db); err != nil {
		return a, err
	}
	if a.Room, err = room(ctx, db); err != nil || a.Schema == 0 {
		return a, err
	}
	var newest sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT max(created) FROM runs").Scan(&newest); err != nil {
		return a, fmt.Errorf("read log: %w", err)
	}
	a.Newest = fromMillis(newest)
	if a.Schema >= firstEncrypted {
		if a.Keys, err = keysInUse(ctx, db); err == nil {
			a.Lacking, err = ring.lacking(ctx, db, a.Keys)
		}
	}
	return a, err
}

// Room is what the log takes now.
func (s *Store) Room(ctx context.Context) (Room, error) { return room(ctx, s.read) }

func room(ctx context.Context, db *sql.DB) (r Room, err error) {
	err = db.QueryRowContext(ctx, `SELECT page_count * page_size, freelist_count * page_size
		FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&r.Bytes, &r.Reusable)
	if err != nil {
		err = fmt.Errorf("read log: %w", err)
	}
	return r, err
}
