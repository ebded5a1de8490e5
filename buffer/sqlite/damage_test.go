package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// damaged is a folder whose process was killed: two runs are live and one has ended, each with three
// chunks, and something has happened to the first live one, or to the ended one.
type damaged struct {
	dir                string
	hurt, other, ended ulid.ULID
}

func newDamaged(t *testing.T, size int) *damaged {
	t.Helper()
	d := &damaged{dir: t.TempDir()}
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	three := func(to buffer.State) ulid.ULID {
		log, r := started(t, s)
		for range 3 {
			must(t, log.Append(t.Context(), [][]byte{bytes.Repeat([]byte("x"), size)}, buffer.Streaming, buffer.Closing{}))
		}
		if to.Ended() {
			must(t, log.Append(t.Context(), nil, to, buffer.Closing{}))
		}
		return r.ID
	}
	d.hurt, d.ended, d.other = three(buffer.Streaming), three(buffer.Completed), three(buffer.Streaming)
	must(t, s.check.finish(s.writer.conn))
	for _, name := range []string{fileName, fileName + "-wal"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(d.dir, name))
	}
	must(t, s.Close())
	return d
}

// A damaged row keeps nobody else from what is theirs: the service starts, its run ends with what can be
// read, and Check names it.
func TestDamage_OfARowIsItsRunsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		query string
		head  int64 // of the run that is hurt, after the recovery
	}{
		"sizes of an arrival":     {"UPDATE arrivals SET sizes = '[9]' WHERE pos = 1 AND run = 1", 1},
		"an arrival that is none": {"UPDATE arrivals SET sizes = 'no list' WHERE pos = 2 AND run = 1", 2},
		"an arrival lost":         {"DELETE FROM arrivals WHERE pos = 0 AND run = 1", 0},
		"data of an arrival":      {"UPDATE arrivals SET data = x'' WHERE pos = 0 AND run = 1", 0},
		"the call's notes":        {"UPDATE calls SET notes = 'no list' WHERE run = 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDamaged(t, 10)
			execute(t, d.dir, test.query)
			faults, err := Check(t.Context(), d.dir)
			if err == nil && !strings.Contains(strings.Join(faults, "\n"), d.hurt.String()) && test.head > 0 {
				t.Errorf("Check does not name the run: %q, %v", faults, err)
			}

			s := openStore(t, Config{Dir: d.dir, lazy: true})
			n, err := s.Recover(t.Context())
			must(t, err)
			if n != 2 {
				t.Errorf("%d runs recovered, want 2", n)
			}
			wantHead(t, s, d.other, 3)
			wantHead(t, s, d.ended, 3)
			r, err := s.Get(t.Context(), d.hurt)
			if err == nil && (!r.State.Ended() || r.Head != test.head) {
				t.Errorf("the run is %s at %d, want it ended at %d", r.State, r.Head, test.head)
			}
			_, _, err = s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
			must(t, err)
			listed := 0
			for _, err := range s.List(t.Context(), buffer.Filter{}) {
				must(t, err)
				listed++
			}
			if swept, err := s.Sweep(t.Context(), time.Now().Add(time.Hour), nil); listed != 4 || err != nil || swept.Released != 3 {
				t.Errorf("%d are listed, want 4; swept %+v, want 3 released, %v", listed, swept, err)
			}
			must(t, s.Close())
		})
	}
}

// A segment that cannot be read keeps neither its neighbours from being read nor the sweep from freeing
// what it can.
func TestDamage_OfASegment(t *testing.T) {
	d := newDamaged(t, 10)
	s := openStore(t, Config{Dir: d.dir, lazy: true})
	_, err := s.Recover(t.Context())
	must(t, errors.Join(err, s.Close()))
	execute(t, d.dir, "UPDATE segments SET sizes = 'no list' WHERE run = 1")

	faults, err := Check(t.Context(), d.dir)
	must(t, err)
	if all := strings.Join(faults, "\n"); !strings.Contains(all, d.hurt.String()) || strings.Contains(all, d.other.String()) {
		t.Errorf("Check finds %q", faults)
	}
	s = openStore(t, Config{Dir: d.dir, lazy: true})
	if _, err := s.Read(t.Context(), d.hurt, 0, 1<<20); err == nil {
		t.Error("read what is damaged")
	}
	wantHead(t, s, d.ended, 3)
	swept, err := s.Sweep(t.Context(), time.Now().Add(time.Hour), nil)
	must(t, err)
	if swept.Released != 3 || swept.Chunks != 6 {
		t.Errorf("swept %+v", swept)
	}
	must(t, s.Close())
	wantSound(t, d.dir)
}

// The first page of each table in turn is overwritten. Without an index the service starts; without a table
// it may not, and says why. What can be read is
// what was written; Check finds it.
func TestDamage_OfAPage(t *testing.T) {
	for _, table := range []string{"arrivals", "segments", "runs_newest", "sqlite_autoindex_segments_1"} {
		t.Run(table, func(t *testing.T) {
			d := newDamaged(t, 3000)
			page := rootPage(t, d.dir, table)
			f, err := os.OpenFile(filepath.Join(d.dir, fileName), os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, pageSize), (page-1)*pageSize)
			must(t, errors.Join(err, f.Close()))

			faults, err := Check(t.Context(), d.dir)
			if err == nil && len(faults) == 0 {
				t.Error("Check finds nothing")
			}
			s, err := Open(t.Context(), Config{Dir: d.dir, lazy: true})
			if err == nil {
				_, err = s.Recover(t.Context())
			}
			if err != nil && (table == "runs_newest" || !strings.Contains(err.Error(), "malformed")) {
				t.Errorf("does not start: %v", err)
			}
			if s == nil {
				return
			}
			for _, id := range []ulid.ULID{d.hurt, d.ended, d.other} {
				page, err := s.Read(t.Context(), id, 0, 1<<20)
				for _, c := range page.Chunks {
					if err == nil && !bytes.Equal(c.Data, bytes.Repeat([]byte("x"), 3000)) {
						t.Errorf("chunk %d of %s is another", c.Pos, id)
					}
				}
			}
			must(t, s.Close())
		})
	}
}

// rootPage is where a table or an index begins, in a file whose write-ahead log is empty by now.
func rootPage(t *testing.T, dir, name string) (page int64) {
	t.Helper()
	must(t, os.Remove(filepath.Join(dir, fileName+"-wal"))) // all of it is in the file
	db := openPool(filepath.Join(dir, fileName), 1, readerPragmas)
	err := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", name).Scan(&page)
	must(t, errors.Join(err, db.Close()))
	return page
}

// Whoever takes the log away from under the process is found out before anything else is believed.
func TestDamage_LogTakenAway(t *testing.T) {
	for name, test := range map[string]struct {
		take func(t *testing.T, file, yesterday string)
		heal func(t *testing.T, file string) // nil: only a restart does
	}{
		"deleted": {func(t *testing.T, file, _ string) { must(t, os.Remove(file)) }, nil},
		"moved away and back": {
			func(t *testing.T, file, _ string) { must(t, os.Rename(file, file+".away")) },
			func(t *testing.T, file string) { must(t, os.Rename(file+".away", file)) }},
		"write-ahead log deleted": {func(t *testing.T, file, _ string) { must(t, os.Remove(file+"-wal")) }, nil},
		"replaced by yesterday's": {func(t *testing.T, file, yesterday string) { must(t, os.Rename(yesterday, file)) }, nil},
		"yesterday's copied over it": {func(t *testing.T, file, yesterday string) {
			b, err := os.ReadFile(yesterday)
			must(t, err)
			must(t, os.WriteFile(file, b, 0o600))
		}, nil},
		"an hour ago's copied over it, of the same size": {func(t *testing.T, file, _ string) {
			b, err := os.ReadFile(file + ".hour")
			must(t, err)
			info, err := os.Stat(file)
			must(t, err)
			must(t, os.WriteFile(file, append(b, make([]byte, info.Size()-int64(len(b)))...), 0o600))
		}, nil},
		"yesterday's copied over it, of the same size": {func(t *testing.T, file, yesterday string) {
			b, err := os.ReadFile(yesterday)
			must(t, err)
			info, err := os.Stat(file)
			must(t, err)
			must(t, os.WriteFile(file, append(b, make([]byte, info.Size()-int64(len(b)))...), 0o600))
		}, nil},
		"emptied": {func(t *testing.T, file, _ string) { must(t, os.Truncate(file, 0)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, fileName)
			must(t, openStore(t, Config{Dir: dir, lazy: true}).Close())
			copyFile(t, file, file+".yesterday")
			s := openStore(t, Config{Dir: dir, lazy: true})
			log, r := started(t, s)
			copyFile(t, file, file+".hour")
			for range 40 { // as much as takes new pages
				must(t, log.Append(t.Context(), [][]byte{make([]byte, 10_000)}, buffer.Streaming, buffer.Closing{}))
			}
			must(t, s.queue.do(t.Context(), checkpoint{}, 0, 0))
			must(t, s.queue.do(t.Context(), checkpoint{}, 0, 0)) // comes after it has ended

			test.take(t, file, file+".yesterday")
			err := log.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{})
			if !errors.Is(err, buffer.ErrStorage) || !errors.Is(err, errReplaced) {
				t.Errorf("an append ended with %v", err)
			}
			if _, _, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle}); !errors.Is(err, buffer.ErrStorage) {
				t.Errorf("a claim ended with %v", err)
			}
			if page, err := s.Read(t.Context(), r.ID, 0, 1<<20); err != nil || len(page.Chunks) != 40 {
				t.Errorf("memory has %d chunks, %v", len(page.Chunks), err)
			}
			if _, err := s.Get(t.Context(), r.ID); !errors.Is(err, errReplaced) {
				t.Errorf("the file was read: %v", err)
			}
			if test.heal == nil {
				if err := s.Close(); !errors.Is(err, errReplaced) {
					t.Errorf("closed with %v", err)
				}
				return
			}
			test.heal(t, file)
			must(t, log.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Completed, buffer.Closing{}))
			wantHead(t, s, r.ID, 41)
			must(t, s.Close())
			wantSound(t, dir)
		})
	}
}

// A backup of yesterday is a sound log that knows less: positions of today are ahead of it.
func TestDamage_YesterdaysLogAtStart(t *testing.T) {
	dir, yesterday := t.TempDir(), t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	log, r := started(t, s)
	must(t, log.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Streaming, buffer.Closing{}))
	must(t, s.check.finish(s.writer.conn))
	copyFile(t, filepath.Join(dir, fileName), filepath.Join(yesterday, fileName))
	must(t, log.Append(t.Context(), [][]byte{[]byte("1")}, buffer.Completed, buffer.Closing{}))
	must(t, s.Close())

	s = openStore(t, Config{Dir: yesterday, lazy: true})
	_, err := s.Recover(t.Context())
	must(t, err)
	wantHead(t, s, r.ID, 1)
	if _, err := s.Read(t.Context(), r.ID, 2, 1); !errors.Is(err, buffer.ErrAhead) {
		t.Errorf("got error %v", err)
	}
	must(t, s.Close())
	wantSound(t, yesterday)
}
