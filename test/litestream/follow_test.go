package litestream_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/benbjohnson/litestream"
	"github.com/benbjohnson/litestream/file"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

const (
	streams = 4
	rounds  = 6
	appends = 40       // of one stream in one round
	chunk   = 64 << 10 // bytes: a round is 10 MiB, so the write-ahead log is copied back many times
)

// While streams are stored and the buffer makes its checkpoints, Litestream follows. What is restored
// of its replica is sound, and has all that was acknowledged before its last sync.
func TestLitestream_FollowsABusyLog(t *testing.T) {
	dir, replica, restored := t.TempDir(), t.TempDir(), t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, Sync: "normal"})
	must(t, err)
	runs := make([]buffer.Log, streams)
	ids := make([]ulid.ULID, streams)
	for i := range runs {
		log, run, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
		must(t, err)
		must(t, log.Attempt(t.Context(), buffer.Attempt{N: 1}))
		runs[i], ids[i] = log, run.ID
	}
	db := follow(t, filepath.Join(dir, "spool.db"), replica)
	largest := int64(0)
	for range rounds {
		round(t, runs)
		must(t, db.SyncAndWait(t.Context()))
		info, err := os.Stat(filepath.Join(dir, "spool.db-wal"))
		must(t, err)
		largest = max(largest, info.Size())
	}
	t.Logf("of %d MiB the write-ahead log held %d at most", streams*rounds*appends*chunk>>20, largest>>20)
	must(t, db.Close(context.WithoutCancel(t.Context())))

	options := litestream.NewRestoreOptions()
	options.OutputPath = filepath.Join(restored, "spool.db")
	must(t, litestream.NewReplicaWithClient(nil, file.NewReplicaClient(replica)).Restore(t.Context(), options))
	sound(t, restored)
	again, err := sqlite.Open(t.Context(), sqlite.Config{Dir: restored})
	must(t, err)
	if n, err := again.Recover(t.Context()); n != streams || err != nil {
		t.Errorf("recovered %d runs, %v", n, err)
	}
	for _, id := range ids {
		if run, err := again.Get(t.Context(), id); err != nil || run.Head != rounds*appends || run.State != buffer.Interrupted {
			t.Errorf("run %s is %s with head %d, %v", id, run.State, run.Head, err)
		}
	}
	must(t, again.Close())
	must(t, s.Close())
	sound(t, dir)
	sound(t, restored)
}

// follow starts Litestream as its own process does, with its tables, its checkpoints and the read
// transaction that it holds between them.
func follow(t *testing.T, log, replica string) *litestream.DB {
	t.Helper()
	db := litestream.NewDB(log)
	db.Replica = litestream.NewReplicaWithClient(db, file.NewReplicaClient(replica))
	must(t, db.Open())
	return db
}

// round appends to all runs at once.
func round(t *testing.T, runs []buffer.Log) {
	t.Helper()
	var work sync.WaitGroup
	for _, log := range runs {
		work.Go(func() {
			for range appends {
				if err := log.Append(t.Context(), [][]byte{make([]byte, chunk)}, buffer.Streaming, buffer.Closing{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}

func sound(t *testing.T, dir string) {
	t.Helper()
	broken, err := sqlite.Check(t.Context(), dir)
	must(t, err)
	for _, line := range broken {
		t.Error(line)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
