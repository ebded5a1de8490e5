package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/rig"
)

const (
	logName = "spool.db"
	walName = "spool.db-wal"
	walHead = 32   // bytes; another one begins when the log starts again from its beginning
	block   = 4096 // what a disk writes as a whole, at best
)

func powerFaults() []fault {
	return []fault{
		{"power cut, unflushed blocks kept by chance", "nothing that a client saw with sync=full is lost", powerCut},
		{"write-ahead log torn or damaged", "the log is what it was at one of its commits", tornWAL},
		{"kill -9 of the built binary at each step of a run's order", "what a client saw is there, nothing is stuck, and only what had no content is bought again", killed},
	}
}

// flushed is what a disk holds for certain, and how many chunks of each run clients have seen by then.
type flushed struct {
	mu   sync.Mutex
	dir  string
	db   []byte
	wal  []byte
	head []byte // of the write-ahead log, at the last checkpoint
	over int    // of its bytes, those that were flushed by then: the file has taken pages from them
	seen map[ulid.ULID]int
	cut  func(db, wal []byte, seen map[ulid.ULID]int) // stages one, with what the files hold besides
	err  error

	moments int // at which the power could fail
}

// files reads what is written by now, flushed or not.
func (f *flushed) files() (db, wal []byte) {
	db, err := os.ReadFile(filepath.Join(f.dir, logName))
	wal, err2 := os.ReadFile(filepath.Join(f.dir, walName))
	f.err = errors.Join(f.err, err, err2)
	return db, wal
}

// flush is told of each flush of a file. The power may fail before it has come to its end.
func (f *flushed) flush(path string) (done func()) {
	if filepath.Dir(path) != f.dir {
		return func() {}
	}
	f.moment()
	written, err := os.ReadFile(path)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = errors.Join(f.err, err)
		if filepath.Base(path) == walName {
			f.wal = written
		} else {
			f.db = written
		}
	}
}

// moment may cut the power now.
func (f *flushed) moment() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moments++; len(f.seen) > 0 && f.moments%8 == 0 {
		db, wal := f.files()
		f.cut(db, wal, f.seen)
	}
}

// saw notes that a client has seen n chunks of a run.
func (f *flushed) saw(id ulid.ULID, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[id] = n
}

// mix is what a disk holds of a file: each block as it was flushed, or as it was written since.
func mix(rng *rand.Rand, flushed, written []byte) []byte {
	keep := rng.IntN(5) // of four: none, some, or all
	out := bytes.Clone(flushed)
	for at := 0; at < len(written); at += block {
		if rng.IntN(4) >= keep {
			continue
		}
		end := min(at+block, len(written))
		if len(out) < end {
			out = append(out, make([]byte, end-len(out))...)
		}
		copy(out[at:], written[at:end])
	}
	return out
}

func powerCut(t *testing.T, c *count) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	f := &flushed{dir: t.TempDir(), seen: map[ulid.ULID]int{}}
	f.cut = func(db, wal []byte, seen map[ulid.ULID]int) {
		c.times++
		dir := t.TempDir()
		f.err = errors.Join(f.err, os.WriteFile(filepath.Join(dir, logName), mix(rng, f.db, db), 0o600),
			os.WriteFile(filepath.Join(dir, walName), mix(rng, f.wal, wal), 0o600))
		reopen(t, c, dir, seen)
		f.err = errors.Join(f.err, os.RemoveAll(dir))
	}
	watchFlushes(t, f.flush)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: f.dir, Fault: func(p sqlite.Point) error {
		if p == sqlite.AtCommitted {
			f.moment()
		}
		return nil
	}})
	must(t, err)
	write(t, rng, s, f.saw)
	must(t, errors.Join(s.Close(), f.err))
}

// write has four runs grow in turn, by little and by much, so that there are checkpoints; some end.
func write(t *testing.T, rng *rand.Rand, s *sqlite.Store, saw func(ulid.ULID, int)) {
	t.Helper()
	type writing struct {
		log buffer.Log
		id  ulid.ULID
		n   int
	}
	var runs [4]*writing
	for i := range 40 {
		w := runs[i%len(runs)]
		if w == nil {
			w = &writing{id: ulid.Make()}
			var err error
			w.log, _, err = s.Create(t.Context(), buffer.Run{ID: w.id, State: buffer.Idle})
			must(t, err)
			must(t, w.log.Attempt(t.Context(), buffer.Attempt{N: 1}))
			runs[i%len(runs)] = w
		}
		size := []int{10, 3000, 1 << 20}[rng.IntN(3)]
		to := buffer.Streaming
		if rng.IntN(6) == 0 {
			to, runs[i%len(runs)] = buffer.Completed, nil
		}
		must(t, w.log.Append(t.Context(), [][]byte{chunk(w.id, w.n, size)}, to, buffer.Closing{}))
		w.n++
		saw(w.id, w.n)
	}
}

// chunk names its run and its place.
func chunk(id ulid.ULID, n, size int) []byte {
	head := fmt.Appendf(nil, "%s %d ", id, n)
	return append(head, bytes.Repeat([]byte{byte('a' + n%26)}, size)...)
}

// reopen starts a service on what is left, and holds it against what clients saw; nil is anything.
func reopen(t *testing.T, c *count, dir string, seen map[ulid.ULID]int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: dir, Sync: "normal"})
	if err == nil {
		_, err = s.Recover(ctx)
	}
	if err != nil {
		c.corrupted++
		t.Error(err)
		return
	}
	for r, err := range s.List(ctx, buffer.Filter{}) {
		if err != nil || !sound(ctx, s, r) {
			c.corrupted++
			t.Errorf("run %s: %v", r.ID, err)
		}
	}
	for id, n := range seen {
		r, err := s.Get(ctx, id)
		if err != nil || r.Head < int64(n) {
			c.lost += n - int(r.Head)
			t.Errorf("run %s has %d of %d chunks: %v", id, r.Head, n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	rig.Check(t, dir)
}

// sound reports whether the run's chunks are the ones that were written.
func sound(ctx context.Context, s *sqlite.Store, r buffer.Run) bool {
	for from := int64(0); from < r.Head; {
		page, err := s.Read(ctx, r.ID, from, 1<<20)
		if err != nil || len(page.Chunks) == 0 {
			return false
		}
		for _, got := range page.Chunks {
			head := fmt.Appendf(nil, "%s %d ", r.ID, from)
			if !bytes.HasPrefix(got.Data, head) || !bytes.Equal(got.Data, chunk(r.ID, int(from), len(got.Data)-len(head))) {
				return false
			}
			from++
		}
	}
	return true
}

// keep takes the write-ahead log as it is at each commit, and the file as it is at each checkpoint.
func (f *flushed) keep(p sqlite.Point) error {
	if p != sqlite.AtCommitted && p != sqlite.AtCheckpointed {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	db, wal := f.files()
	switch {
	case p == sqlite.AtCheckpointed:
		f.db, f.head, f.over = db, wal[:min(walHead, len(wal))], len(wal)
		return nil
	case f.db == nil:
		f.db = db
	}
	f.wal = wal
	return nil
}

// tornWAL ends a write-ahead log anywhere, or flips a bit anywhere in it, where no checkpoint has flushed it
// and gone on to change the file.
func tornWAL(t *testing.T, c *count) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	f := &flushed{dir: t.TempDir(), seen: map[ulid.ULID]int{}}
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: f.dir, Sync: "normal", Fault: f.keep})
	must(t, err)
	write(t, rng, s, f.saw)
	for range 15 {
		wal := bytes.Clone(f.wal)
		safe := 0
		if bytes.HasPrefix(wal, f.head) {
			safe = min(f.over, len(wal)-1)
		}
		if at := safe + rng.IntN(len(wal)-safe); rng.IntN(2) == 0 {
			wal = wal[:at]
		} else {
			wal[at] ^= 1 << rng.IntN(8)
		}
		dir := t.TempDir()
		must(t, errors.Join(os.WriteFile(filepath.Join(dir, logName), f.db, 0o600), os.WriteFile(filepath.Join(dir, walName), wal, 0o600)))
		c.times++
		reopen(t, c, dir, nil)
		must(t, os.RemoveAll(dir))
	}
	must(t, errors.Join(s.Close(), f.err))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
