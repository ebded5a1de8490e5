package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// A real log, which begins again after a checkpoint.
func TestReadWAL_CountsWhatIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", file+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // the test is over
	db.SetMaxOpenConns(1)
	exec := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	state := func() walState {
		t.Helper()
		s, ok := readWAL(file + "-shm")
		if !ok {
			t.Fatal("not read")
		}
		return s
	}
	exec("CREATE TABLE x (v BLOB)")
	before := state()
	exec("INSERT INTO x VALUES (zeroblob(40000))")
	grown := state()
	if got := grown.since(before); got < 40_000 || got > 80_000 {
		t.Errorf("grew by %d bytes", got)
	}
	if got := grown.since(grown); got != 0 {
		t.Errorf("grew by %d bytes without a write", got)
	}
	exec("PRAGMA wal_checkpoint(RESTART)")
	exec("INSERT INTO x VALUES (zeroblob(10000))")
	if got := state().since(grown); got < 10_000 || got > 40_000 {
		t.Errorf("after it began again: grew by %d bytes", got)
	}
}

func TestReadWAL_OfNoFile(t *testing.T) {
	if s, ok := readWAL(filepath.Join(t.TempDir(), "none")); ok {
		t.Errorf("got %+v", s)
	}
}
