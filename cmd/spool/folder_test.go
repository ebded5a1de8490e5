package main

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// mode MODE PATH… checks the permissions of files and folders.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range args[1:] {
		info, err := os.Stat(ts.MkAbs(path))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
			ts.Fatalf("%s has mode %s, want %s", path, got, args[0])
		}
	}
}

// remember notes all that is in the script's folder.
func remember(ts *testscript.TestScript, _ bool, _ []string) { of(ts).before = contents(ts) }

// unchanged checks that it is still as it was noted.
func unchanged(ts *testscript.TestScript, _ bool, _ []string) {
	if now, before := contents(ts), of(ts).before; now != before {
		ts.Fatalf("something was touched; before:\n%s\nnow:\n%s", before, now)
	}
}

// contents is the names and the contents of all files; of a lock its name, since its text is for
// people who look for the holder.
func contents(ts *testscript.TestScript) string {
	var all strings.Builder
	root := ts.MkAbs(".")
	ts.Check(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path, entry.Type())
		if !entry.Type().IsRegular() || filepath.Ext(path) == ".lock" {
			return nil
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%q\n", b)
		return err
	}))
	return all.String()
}

// store DIR makes a log that holds one run of three chunks; $RUN is its id.
func store(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: ts.MkAbs(args[0])})
	ts.Check(err)
	log, r, err := s.Create(ctx, buffer.Run{ID: ulid.Make(), Caller: "agent", State: buffer.Idle, TTL: time.Hour})
	ts.Check(err)
	row := buffer.Attempt{N: 1, Sent: time.Now()}
	ts.Check(log.Attempt(ctx, row))
	row.Ended = row.Sent
	chunks := [][]byte{[]byte("data: a\n\n"), []byte("data: b\n\n"), []byte("data: c\n\n")}
	ts.Check(log.Append(ctx, chunks, buffer.Completed, buffer.Closing{Attempt: &row}))
	ts.Check(s.Close())
	ts.Setenv("RUN", r.ID.String())
}

// sql DIR STATEMENT changes a log that no process has open, as no store would.
func change(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", filepath.Join(ts.MkAbs(args[0]), "spool.db"))
	ts.Check(err)
	defer db.Close() // what it changed is committed
	_, err = db.Exec(args[1])
	ts.Check(err)
}
