package sqlite

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

var errDisk = errors.New("disk is gone")

// faults fails the points that are switched on, each for so many times.
type faults map[Point]*atomic.Int64

func newFaults() faults {
	f := faults{}
	for _, point := range []Point{AtWrite, AtCommit, AtCommitted, AtLook} {
		f[point] = new(atomic.Int64)
	}
	return f
}

func (f faults) at(point Point) error {
	n := f[point]
	if n == nil {
		return nil
	}
	if n.Add(-1) >= 0 {
		return errDisk
	}
	n.Store(0)
	return nil
}

func TestFault_OfACommit(t *testing.T) {
	for name, test := range map[string]struct {
		point Point
		times int64
		look  int64 // how often the file cannot be asked afterwards
		want  error
	}{
		"statement fails once":       {"write", 1, 0, nil},
		"statement fails twice":      {"write", 2, 0, buffer.ErrStorage},
		"commit fails once":          {"commit", 1, 0, nil},
		"commit fails twice":         {"commit", 2, 0, buffer.ErrStorage},
		"commit fails but was kept":  {"committed", 1, 0, nil},
		"kept, and known only later": {"committed", 1, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f := t.TempDir(), newFaults()
			s := openStore(t, Config{Dir: dir, lazy: true, Fault: f.at})
			log, r := started(t, s)
			must(t, log.Append(t.Context(), [][]byte{[]byte("0")}, buffer.Streaming, buffer.Closing{}))

			f[test.point].Store(test.times)
			f["look"].Store(test.look)
			err := log.Append(t.Context(), [][]byte{[]byte("1")}, buffer.Streaming, buffer.Closing{})
			if !errors.Is(err, test.want) {
				t.Fatalf("got error %v, want %v", err, test.want)
			}
			want := int64(2)
			if err != nil {
				want = 1
				if !errors.Is(err, errDisk) {
					t.Fatalf("the cause is not told: %v", err)
				}
			}
			wantHead(t, s, r.ID, want)

			// The log goes on where it was, and the file agrees with memory.
			must(t, log.Append(t.Context(), [][]byte{[]byte("2")}, buffer.Completed, buffer.Closing{}))
			wantHead(t, s, r.ID, want+1)
			must(t, s.Close())
			wantSound(t, dir)
		})
	}
}

// What fails alone does not take the others of its batch with it.
func TestFault_InABatch(t *testing.T) {
	dir, f := t.TempDir(), newFaults()
	s := openStore(t, Config{Dir: dir, lazy: true, Fault: f.at})
	var logs []buffer.Log
	var runs []buffer.Run
	for range 3 {
		log, r := started(t, s)
		logs, runs = append(logs, log), append(runs, r)
	}
	var batch []*request
	for _, log := range logs {
		batch = append(batch, &request{ctx: t.Context(), done: make(chan struct{}),
			op: &appendOp{log: log.(*runLog), chunks: [][]byte{[]byte("x")}, state: buffer.Streaming}})
	}
	f["commit"].Store(2) // the batch, and then the first by itself
	s.queue.mu.Lock()
	s.queue.waiting = append(s.queue.waiting, batch...)
	s.queue.mu.Unlock()
	s.queue.ring()
	for i, r := range batch {
		<-r.done
		want, head := error(nil), int64(1)
		if i == 0 {
			want, head = buffer.ErrStorage, 0
		}
		if !errors.Is(r.err, want) {
			t.Fatalf("request %d: %v", i, r.err)
		}
		wantHead(t, s, runs[i].ID, head)
	}
	must(t, s.Close())
	wantSound(t, dir)
}

func TestFault_OfACreateLeavesNothing(t *testing.T) {
	dir, f := t.TempDir(), newFaults()
	s := openStore(t, Config{Dir: dir, lazy: true, Fault: f.at})
	run := buffer.Run{ID: ulid.Make(), Key: "k", State: buffer.Idle}
	f["commit"].Store(2)
	_, _, err := s.Create(t.Context(), run)
	if !errors.Is(err, buffer.ErrStorage) {
		t.Fatalf("got error %v", err)
	}
	if _, err := s.Get(t.Context(), run.ID); !errors.Is(err, buffer.ErrNotFound) {
		t.Fatalf("got error %v", err)
	}
	f["committed"].Store(1)
	_, _, err = s.Create(t.Context(), run)
	must(t, err)
	must(t, s.Close())
	wantSound(t, dir)
}

// A file that cannot be asked any more does not keep Close waiting.
func TestFault_CloseEndsTheSearch(t *testing.T) {
	dir, f := t.TempDir(), newFaults()
	looked := make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	s := openStore(t, Config{Dir: dir, lazy: true, Fault: func(point Point) error {
		if point == AtLook {
			look()
		}
		return f.at(point)
	}})
	log, _ := started(t, s)
	f["committed"].Store(1)
	f["look"].Store(1 << 40)
	answer := make(chan error)
	go func() {
		answer <- log.Append(t.Context(), [][]byte{[]byte("x")}, buffer.Streaming, buffer.Closing{})
	}()
	<-looked
	must(t, s.Close())
	// It was kept, but nobody knows: to the caller the log is closed, and it is not tried again.
	if err := <-answer; !errors.Is(err, buffer.ErrClosed) {
		t.Fatalf("got error %v to what nobody could know", err)
	}
	db := openPool(filepath.Join(dir, fileName), 1, readerPragmas)
	var n int
	must(t, errors.Join(db.QueryRow("SELECT count(*) FROM log").Scan(&n), db.Close()))
	if n != 1 {
		t.Fatalf("%d chunks are stored, want 1", n)
	}
	wantSound(t, dir)
}

func wantHead(t *testing.T, s *Store, id ulid.ULID, want int64) {
	t.Helper()
	r, err := s.Get(t.Context(), id)
	must(t, err)
	page, err := s.Read(t.Context(), id, 0, 1<<20)
	must(t, err)
	if r.Head != want || page.Run.Head != want || int64(len(page.Chunks)) != want {
		t.Fatalf("head is %d in the file, %d in memory, %d chunks; want %d", r.Head, page.Run.Head, len(page.Chunks), want)
	}
}
