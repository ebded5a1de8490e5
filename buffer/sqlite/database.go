package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/spool-dev/spool/migrations"
)

// busyTimeout is how long a statement waits for another connection's lock before it fails.
const busyTimeout = "busy_timeout(10000)"

// readerPragmas, as all pragmas, are in the DSN, since each new connection needs them.
var readerPragmas = []string{busyTimeout, "query_only(ON)"}

// fixerPragmas are for the connections that change the file but not the runs.
func fixerPragmas(sync string) []string {
	return []string{busyTimeout, "journal_mode(WAL)", "synchronous(" + sync + ")", "wal_autocheckpoint(0)"}
}

// writerPragmas gives the write connection 8 MiB of cache: what a usual transaction writes, and few pages more, so
// that those are still in the processor's own cache when they are used again. A transaction that writes more has
// some pages written twice.
func writerPragmas(sync string) []string {
	return append(fixerPragmas(sync), "foreign_keys(ON)", "cache_size(-8192)")
}

func dsn(file string, pragmas []string, params ...string) string {
	q := url.Values{"_pragma": pragmas}
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: q.Encode()}).String()
}

// openPool opens no connection yet; that happens with the first statement.
func openPool(file string, size int, pragmas []string, params ...string) *sql.DB {
	db := sql.OpenDB(connector{dsn(file, pragmas, params...)})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// openReadOnly opens a file that may belong to another process, without creating anything beside it. A
// file without a write-ahead log has no process that writes, and is read as it stands. One with a
// write-ahead log but without its index has none either: the index is built in memory.
func openReadOnly(file string) (*sql.DB, error) {
	if ok, err := exists(file); err != nil || !ok {
		return nil, errors.Join(err, fmt.Errorf("no log at %s", file))
	}
	wal, err := exists(file + "-wal")
	if err != nil {
		return nil, err
	}
	if wal {
		shm, err := exists(file + "-shm")
		if err != nil {
			return nil, err
		}
		if shm {
			return openPool(file, 1, readerPragmas, "mode", "ro"), nil
		}
		alone := append([]string{"locking_mode(EXCLUSIVE)"}, readerPragmas...)
		return openPool(file, 1, alone, "mode", "ro", "vfs", "unix-none"), nil
	}
	return openPool(file, 1, readerPragmas, "mode", "ro", "immutable", "1"), nil
}

// migrate brings the file to this version's schema, and creates it where there is none, for its
// owner's eyes only. A crash here leaves a file at one of the numbered versions. Processes that have it open
// already go on with it, so a version only adds to the schema of the one before.
func migrate(ctx context.Context, file, sync string) error {
	if err := createFile(file); err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	db := openPool(file, 1, fixerPragmas(sync))
	defer db.Close() // it has no transaction open
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// createFile makes the file where there is none. One that is there is let be: the kernel takes the locks that a
// process has on a file with the first descriptor of it that is closed, and so from the connections of another
// store in this process.
func createFile(file string) error {
	if ok, err := exists(file); ok || err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// refuseNewer looks at the file's version without touching it.
func refuseNewer(ctx context.Context, file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := openReadOnly(file)
	if err != nil {
		return err
	}
	defer db.Close() // it was only read from
	have, want, err := versions(ctx, db)
	if err == nil && have > want {
		err = fmt.Errorf("%w: its schema is %d, this program knows %d", ErrNewer, have, want)
	}
	return err
}

// versions returns the schema version of the file, 0 where it has none yet, and the program's own.
func versions(ctx context.Context, db *sql.DB) (have, want int64, err error) {
	files, err := migrations.FS.ReadDir(".")
	if err != nil {
		return 0, 0, err
	}
	for _, f := range files {
		n, err := goose.NumericComponent(f.Name())
		if err != nil {
			return 0, 0, err
		}
		want = max(want, n)
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").Scan(&tables); err != nil {
		return 0, want, fmt.Errorf("read schema: %w", err)
	}
	if tables == 0 {
		return 0, want, nil
	}
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&have)
	if err != nil {
		return 0, want, fmt.Errorf("read schema: %w", err)
	}
	return have, want, nil
}
