package sqlite

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

func TestCheck_FindsWhatIsBroken(t *testing.T) {
	sound := t.TempDir()
	s := openStore(t, Config{Dir: sound, lazy: true})
	log, _, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), Key: "k", State: buffer.Idle})
	must(t, err)
	must(t, log.Attempt(t.Context(), buffer.Attempt{N: 1}))
	must(t, log.Append(t.Context(), [][]byte{[]byte("ab"), []byte("cd"), []byte("ef")}, buffer.Completed, buffer.Closing{}))
	_, _, err = s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
	must(t, err)
	long, _ := started(t, s)
	must(t, long.Append(t.Context(), [][]byte{make([]byte, segmentBytes), []byte("z")}, buffer.Completed, buffer.Closing{}))
	live, _ := started(t, s)
	for range 2 {
		must(t, live.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{}))
	}
	must(t, s.Close())
	for name, test := range map[string]struct{ query, want string }{
		"nothing":           {"SELECT 1", ""},
		"segment lost":      {"DELETE FROM segments WHERE length(data) = 65536", "has chunks from position 1 on, at byte 65536, but should from 0, at byte 0"},
		"head too high":     {"UPDATE runs SET head = 4 WHERE head = 3", "has head 4 and 6 bytes, but its segments end at 3 and 6"},
		"all lost":          {"DELETE FROM segments", "but its segments end at 0 and 0"},
		"size":              {"UPDATE segments SET sizes = '[2,3,2]' WHERE sizes = '[2,2,2]'", "has 6 bytes from position 0 on, but sizes of 7"},
		"size lost":         {"UPDATE segments SET sizes = '[2,4]' WHERE sizes = '[2,2,2]'", "but its segments end at 2 and 6"},
		"shorter data":      {"UPDATE segments SET data = x'41' WHERE length(data) = 65536", "has 1 bytes from position 0 on"},
		"start":             {"UPDATE segments SET start = 5 WHERE pos = 1", "at byte 5, but should from 1, at byte 65536"},
		"bytes":             {"UPDATE runs SET bytes = 9 WHERE head = 3", "has head 3 and 9 bytes"},
		"arrival lost":      {"DELETE FROM arrivals WHERE pos = 0", "has chunks from position 1 on"},
		"no end":            {"UPDATE runs SET ended = NULL WHERE state = 'completed'", "without a time of its end"},
		"live but ended":    {"UPDATE runs SET ended = 1 WHERE state = 'idle'", "is idle, but has ended"},
		"completed, reason": {"UPDATE runs SET reason = 'reset' WHERE state = 'completed'", "completed for the reason reset"},
		"dead owner":        {"INSERT INTO owners (started, recovered) VALUES (1, 9999999999999)", "its owner 1 is dead"},
		"no call":           {"DELETE FROM calls WHERE key = ''", "has no call"},
		"another's key":     {"UPDATE keys SET caller = 'other'", "is named by a key of other"},
		"key lost":          {"DELETE FROM keys", "has a key that names no run"},
		"key without run":   {"UPDATE keys SET run = 77", "names a row of runs that is not there"},
		"open attempt":      {"UPDATE attempts SET ended = NULL", "its attempt 1 is open"},
		"no attempt":        {"DELETE FROM attempts", "has chunks, but no attempt was sent"},
		"swept with chunks": {"UPDATE runs SET state = 'released', released = 1, swept = 1 WHERE head = 3", "is swept, but has 1 segments"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFile(t, filepath.Join(sound, fileName), filepath.Join(dir, fileName))
			execute(t, dir, test.query)

			faults, err := Check(t.Context(), dir)
			must(t, err)
			if test.want == "" && len(faults) > 0 || !strings.Contains(strings.Join(faults, "\n"), test.want) {
				t.Fatalf("want %q, got %q", test.want, faults)
			}
		})
	}
}

// A log whose process was killed has its last commits in the write-ahead log only, and perhaps not the
// index of that. Check reads it without leaving anything behind.
func TestCheck_ChangesNothing(t *testing.T) {
	dir, killed, copied := t.TempDir(), t.TempDir(), t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	log, r := started(t, s)
	must(t, log.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{}))
	wantSound(t, dir) // running
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(killed, name))
		if name != fileName+"-shm" {
			copyFile(t, filepath.Join(dir, name), filepath.Join(copied, name))
		}
	}
	must(t, s.Close())

	for _, dir := range []string{dir, killed, copied} {
		before := read(t, dir)
		wantSound(t, dir)
		if read(t, dir) != before {
			t.Fatal("the folder was changed")
		}
	}
	again := openStore(t, Config{Dir: killed, lazy: true})
	n, err := again.Recover(t.Context())
	must(t, err)
	if n != 1 {
		t.Fatalf("recovered %d runs, want 1", n)
	}
	wantHead(t, again, r.ID, 1)
	must(t, again.Close())
	wantSound(t, killed)

	if _, err := Check(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Fatal("a log that is not there is sound")
	}
}

// The write-ahead log stays bounded however much is written, with readers coming and going.
func TestCheckpoint_BoundsTheLog(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true, Window: -1})
	log, r := started(t, s)
	var largest int64
	for i := range 16 {
		must(t, log.Append(t.Context(), [][]byte{make([]byte, 4<<20)}, buffer.Streaming, buffer.Closing{}))
		_, err := s.Read(t.Context(), r.ID, int64(i), 1)
		must(t, err)
		info, err := os.Stat(filepath.Join(dir, fileName+"-wal"))
		must(t, err)
		largest = max(largest, info.Size())
	}
	if largest > 48<<20 {
		t.Fatalf("the write-ahead log grew to %d bytes of 64 MiB", largest)
	}
	must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
	_, err := s.Sweep(t.Context(), time.Now().Add(time.Second), nil)
	must(t, err)
	must(t, s.Close())
	wantSound(t, dir)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.Create(to)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
}
