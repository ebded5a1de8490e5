package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

func TestOpen_Refusals(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) string
		want    error
	}{
		"folder is a file": {func(t *testing.T, dir string) string {
			file := filepath.Join(dir, "file")
			must(t, os.WriteFile(file, nil, 0o600))
			return file
		}, nil},
		"folder below a file": {func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			return filepath.Join(dir, "file", "data")
		}, nil},
		"in use": {func(t *testing.T, dir string) string {
			s := openStore(t, Config{Dir: dir, lazy: true})
			t.Cleanup(func() { must(t, s.Close()) })
			must(t, s.queue.do(t.Context(), compare{}, 0, 0)) // by then the checkpoint of its opening is done
			return dir
		}, ErrInUse},
		"newer schema": {func(t *testing.T, dir string) string {
			must(t, openStore(t, Config{Dir: dir, lazy: true}).Close())
			execute(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
			return dir
		}, ErrNewer},
		"not a log": {func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, fileName), []byte(strings.Repeat("not a database ", 100)), 0o600))
			return dir
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := test.prepare(t, t.TempDir())
			before := read(t, dir)
			s, err := Open(t.Context(), Config{Dir: dir, lazy: true})
			if err == nil {
				must(t, s.Close())
				t.Fatal("opened")
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("got error %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
				t.Fatalf("not one clear line: %q", err)
			}
			if read(t, dir) != before {
				t.Fatal("the log was touched")
			}
		})
	}
}

func TestOpen_FilesAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	s := openStore(t, Config{Dir: dir, lazy: true})
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		if !info.IsDir() && info.Mode().Perm() != 0o600 || info.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %s", e.Name(), info.Mode())
		}
	}
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %s", info.Mode())
	}
	must(t, s.Close())
	wantSound(t, dir)
}

func TestOpen_BadConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Dir: t.TempDir(), Sync: "off"}} {
		if _, err := Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// With the defaults, and a character in the path that means something in a file name's query.
func TestOpen_FullSync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b #%41")
	s := openStore(t, Config{Dir: dir})
	log, r := started(t, s)
	must(t, log.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Completed, buffer.Closing{}))
	var sync int
	_, err := s.writer.conn.scan("PRAGMA synchronous", nil, &sync)
	must(t, err)
	if sync != 2 {
		t.Fatalf("synchronous is %d, want FULL", sync)
	}
	must(t, s.Close())
	wantSound(t, dir)

	var run, data string
	db := openPool(filepath.Join(dir, fileName), 1, readerPragmas)
	defer db.Close()
	must(t, db.QueryRow("SELECT run, data FROM log WHERE position = 0").Scan(&run, &data))
	if run != r.ID.String() || data != "x" {
		t.Fatalf("the view log has %s %q", run, data)
	}
}

// The trigger's table and the Go one are the same.
func TestSchema_TransitionsAreThoseOfState(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	_, r := started(t, s)
	must(t, s.Close())
	db := openPool(filepath.Join(dir, fileName), 1, []string{"ignore_check_constraints(ON)"})
	defer db.Close()
	states := []buffer.State{buffer.Idle, buffer.Streaming, buffer.Completed, buffer.Interrupted, buffer.Cancelled, buffer.Failed, buffer.Released}
	for _, from := range states {
		for _, to := range states {
			tx, err := db.Begin()
			must(t, err)
			must(t, force(tx, r.ID, from))
			_, err = tx.Exec("UPDATE runs SET state = ? WHERE id = ?", to, r.ID.String())
			if (err == nil) != from.CanBecome(to) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
			must(t, tx.Rollback())
		}
	}
}

// force puts a run into a state along a path that is allowed.
func force(tx *sql.Tx, id ulid.ULID, state buffer.State) error {
	paths := map[buffer.State][]buffer.State{
		buffer.Interrupted: {buffer.Streaming, buffer.Interrupted}, buffer.Cancelled: {buffer.Streaming, buffer.Cancelled},
		buffer.Released: {buffer.Failed, buffer.Released},
	}
	path := paths[state]
	if path == nil {
		path = []buffer.State{state}
	}
	for _, s := range path {
		if _, err := tx.Exec("UPDATE runs SET state = ? WHERE id = ?", s, id.String()); err != nil {
			return err
		}
	}
	return nil
}

// started is a new run with its first ledger row.
func started(t testing.TB, s *Store) (buffer.Log, buffer.Run) {
	t.Helper()
	log, r, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
	must(t, err)
	must(t, log.Attempt(t.Context(), buffer.Attempt{N: 1}))
	return log, r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// execute changes a log that no store has open, as no store would.
func execute(t testing.TB, dir, query string) {
	t.Helper()
	db := openPool(filepath.Join(dir, fileName), 1, []string{"ignore_check_constraints(ON)", "foreign_keys(OFF)"})
	_, err := db.ExecContext(context.Background(), query)
	must(t, errors.Join(err, db.Close()))
}

// read is what is in the log, and which files are beside it.
func read(t testing.TB, dir string) string {
	t.Helper()
	all, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		all = nil // there is none
	}
	entries, _ := os.ReadDir(dir) // nor a folder, perhaps
	for _, e := range entries {
		if e.Name() != lockName {
			all = append(all, "\n"+e.Name()...)
		}
	}
	return string(all)
}
