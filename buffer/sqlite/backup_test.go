package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Backups of a busy log are sound, each of them one state: what was acknowledged before it began is in
// it, and what is restored goes on as after a crash.
func TestBackup_OfABusyLog(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	logs := make([]buffer.Log, 4)
	ids := make([]ulid.ULID, len(logs))
	for i := range logs {
		l, r := started(t, s)
		logs[i], ids[i] = l, r.ID
		must(t, l.Append(ctx, [][]byte{[]byte("acknowledged")}, buffer.Streaming, buffer.Closing{}))
	}
	for _, l := range logs {
		writers.Go(func() {
			for ctx.Err() == nil {
				err := l.Append(ctx, [][]byte{make([]byte, 3000), []byte("x")}, buffer.Streaming, buffer.Closing{})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	copies := t.TempDir()
	var told []int64
	for _, name := range []string{"one.db", "two.db"} {
		told = nil
		c, err := Backup(t.Context(), dir, filepath.Join(copies, name), func(done, total int64) { told = append(told, done, total) })
		must(t, err)
		if c.Live != int64(len(logs)) || c.Runs != c.Live {
			t.Errorf("%s: %+v", name, c)
		}
		if n := len(told); n == 0 || told[n-2] != told[n-1] || told[n-1] != c.Bytes {
			t.Errorf("%s: of %d bytes told %v", name, c.Bytes, told)
		}
	}
	stop()
	writers.Wait()
	must(t, s.Close())
	wantSound(t, dir)
	for _, name := range []string{"one.db", "two.db"} {
		to := filepath.Join(t.TempDir(), "new", "data")
		c, err := Restore(t.Context(), filepath.Join(copies, name), to, nil)
		must(t, err)
		if c.Live != int64(len(logs)) {
			t.Errorf("%s: %d live", name, c.Live)
		}
		wantSound(t, to)
		again := openStore(t, Config{Dir: to, lazy: true})
		if n, err := again.Recover(t.Context()); n != len(logs) || err != nil {
			t.Errorf("%s: recovered %d, %v", name, n, err)
		}
		for _, id := range ids {
			page, err := again.Read(t.Context(), id, 0, 1)
			if err != nil || string(page.Chunks[0].Data) != "acknowledged" || page.Run.State != buffer.Interrupted {
				t.Errorf("%s: run %s is %s, %v", name, id, page.Run.State, err)
			}
		}
		must(t, again.Close())
		wantSound(t, to)
	}
	if files, _ := os.ReadDir(copies); len(files) != 2 {
		t.Errorf("left behind: %v", files)
	}
}

// What has not been checked has no name, and what has one is never replaced.
func TestBackup_Refusals(t *testing.T) {
	sound, broken, old, newer := sampleLog(t), sampleLog(t), sampleLog(t), sampleLog(t)
	execute(t, broken, "DELETE FROM segments")
	execute(t, old, "UPDATE goose_db_version SET version_id = 0")
	execute(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
	taken := filepath.Join(t.TempDir(), "taken")
	must(t, os.WriteFile(taken, []byte("precious"), 0o600))
	ended, end := context.WithCancel(t.Context())
	end()
	free := func() string { return filepath.Join(t.TempDir(), "copy.db") }
	into := func(dir string) string { return filepath.Join(dir, fileName) }
	for name, test := range map[string]struct {
		do   func() error
		want string
	}{
		"over a file":         {func() error { _, err := Backup(t.Context(), sound, taken, nil); return err }, "is there already"},
		"of nothing":          {func() error { _, err := Backup(t.Context(), t.TempDir(), free(), nil); return err }, "no log at"},
		"of a broken log":     {func() error { _, err := Backup(t.Context(), broken, free(), nil); return err }, "the first: run"},
		"of a newer log":      {func() error { _, err := Backup(t.Context(), newer, free(), nil); return err }, "newer version"},
		"into no folder":      {func() error { _, err := Backup(t.Context(), sound, taken+"/copy.db", nil); return err }, "not a directory"},
		"given up":            {func() error { _, err := Backup(ended, sound, free(), nil); return err }, "context canceled"},
		"restore over a log":  {func() error { _, err := Restore(t.Context(), into(sound), old, nil); return err }, "not empty"},
		"restore over a file": {func() error { _, err := Restore(t.Context(), into(sound), taken, nil); return err }, "not a directory"},
		"restore a broken":    {func() error { _, err := Restore(t.Context(), into(broken), free(), nil); return err }, "broken"},
		"restore no log":      {func() error { _, err := Restore(t.Context(), into(old), free(), nil); return err }, "is no log"},
		"restore a text":      {func() error { _, err := Restore(t.Context(), taken, free(), nil); return err }, "not a database"},
		"restore nothing":     {func() error { _, err := Restore(t.Context(), free(), free(), nil); return err }, "no log at"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.do(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
		})
	}
	if b, err := os.ReadFile(taken); string(b) != "precious" {
		t.Fatalf("it has become %q, %v", b, err)
	}
	for _, dir := range []string{sound, broken, filepath.Dir(taken)} {
		if left, _ := filepath.Glob(filepath.Join(dir, "*.partial")); len(left) > 0 {
			t.Error("left behind:", left)
		}
	}
}

// A folder may be named from where the process is.
func TestBackup_OfARelativeFolder(t *testing.T) {
	dir := sampleLog(t)
	t.Chdir(dir)
	wantSound(t, ".")
	_, err := Backup(t.Context(), ".", "copy?#%.db", nil)
	must(t, err)
	_, err = Restore(t.Context(), "copy?#%.db", "new", nil)
	must(t, err)
	wantSound(t, "new")
	about, err := Look(t.Context(), "new")
	if err != nil || about.Schema == 0 {
		t.Errorf("%+v, %v", about, err)
	}
	_, err = Compact(t.Context(), "new", nil)
	must(t, err)
}

// sampleLog is a folder with a log of one whole run, which no process has open.
func sampleLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	l, _ := started(t, s)
	must(t, l.Append(t.Context(), [][]byte{[]byte("a"), []byte("bc")}, buffer.Completed, buffer.Closing{}))
	must(t, s.Close())
	return dir
}

// A log gets smaller by what was deleted, keeps all else, and is refused while a process has it open.
func TestCompact_GivesBackWhatWasDeleted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true, Window: -1})
	keep, kept := started(t, s)
	must(t, keep.Append(t.Context(), [][]byte{[]byte("kept")}, buffer.Streaming, buffer.Closing{}))
	l, gone := started(t, s)
	must(t, l.Append(t.Context(), [][]byte{make([]byte, 8<<20)}, buffer.Completed, buffer.Closing{}))
	_, err := s.Release(t.Context(), gone.ID)
	must(t, err)
	_, err = s.Sweep(t.Context(), time.Now(), nil)
	must(t, err)
	room, err := s.Room(t.Context())
	must(t, err)
	if room.Reusable < 7<<20 || room.Bytes <= room.Reusable {
		t.Errorf("%+v", room)
	}
	if _, err := Compact(t.Context(), dir, nil); !errors.Is(err, ErrInUse) {
		t.Fatalf("in use: %v", err)
	}
	must(t, s.Close())
	var told []int64
	c, err := Compact(t.Context(), dir, func(done, _ int64) { told = append(told, done) })
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, fileName))
	must(t, err)
	if c.Before != room.Bytes || c.After != info.Size() || c.After > c.Before-7<<20 || !slices.IsSorted(told) {
		t.Errorf("%+v of %+v; told %v", c, room, told)
	}
	about, err := Look(t.Context(), dir)
	must(t, err)
	if about.Reusable != 0 || about.Newest.IsZero() || about.Schema != about.Program {
		t.Errorf("%+v", about)
	}
	wantSound(t, dir)
	again := openStore(t, Config{Dir: dir, lazy: true})
	if n, err := again.Recover(t.Context()); n != 1 || err != nil {
		t.Errorf("recovered %d, %v", n, err)
	}
	page, err := again.Read(t.Context(), kept.ID, 0, 1)
	if err != nil || string(page.Chunks[0].Data) != "kept" {
		t.Errorf("%v %v", page, err)
	}
	must(t, again.Close())
	wantSound(t, dir)
	if _, err := Compact(t.Context(), filepath.Join(dir, "none"), nil); err == nil {
		t.Error("there is none")
	}
}

// A log of a process that was killed is compacted with what is in its write-ahead log. A log that
// somebody reads stays as it is.
func TestCompact_OfAKilledProcess(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	l, r := started(t, s)
	must(t, l.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{}))
	for _, name := range []string{fileName, fileName + "-wal"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(killed, name))
	}
	must(t, s.Close())
	_, err := Compact(t.Context(), killed, nil)
	must(t, err)
	again := openStore(t, Config{Dir: killed, lazy: true})
	wantHead(t, again, r.ID, 1)
	must(t, again.Close())
	wantSound(t, killed)
}

// A reader sees what another process commits, and keeps it from nothing.
func TestReader_SeesAnothersLog(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	l, run := started(t, s)
	r, err := OpenReader(t.Context(), dir)
	must(t, err)
	for n := range int64(3) {
		must(t, l.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{}))
		got, err := r.Get(t.Context(), run.ID)
		if err != nil || got.Head != n+1 {
			t.Fatalf("head %d, %v, want %d", got.Head, err, n+1)
		}
	}
	page, err := r.Read(t.Context(), run.ID, 1, 100)
	if err != nil || len(page.Chunks) != 2 {
		t.Fatalf("%d chunks, %v", len(page.Chunks), err)
	}
	listed := 0
	for got, err := range r.List(t.Context(), buffer.Filter{}) {
		must(t, err)
		if got.Head != 3 {
			t.Errorf("head %d", got.Head)
		}
		listed++
	}
	if listed != 1 {
		t.Errorf("%d runs", listed)
	}
	must(t, r.Close())
	must(t, s.Close())
	execute(t, dir, "UPDATE goose_db_version SET version_id = 0")
	if _, err := OpenReader(t.Context(), dir); err == nil {
		t.Error("another version's log can be read")
	}
}
