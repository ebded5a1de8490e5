package sqlite

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// A reader who leaves while a row is being read is gone then: it keeps no connection of the few, and no goroutine.
func TestRead_LeavingInTheMiddleHangsNobody(t *testing.T) {
	s := openHidden(t, t.TempDir())
	r := written(t, s, 'x', segmentBytes, 3) // a row each
	left := make(chan error, readers+1)
	for range readers + 1 {
		go func() {
			left <- leaveEarly(t, s, r, new(pageMemory))
		}()
	}
	for range readers + 1 {
		select {
		case <-left: // whether it was too late for an error is the database's business
		case <-time.After(30 * time.Second):
			t.Fatal("a reader that has left hangs")
		}
	}
	wantHead(t, s, r.ID, 3)
	wantNoPageRead(t)
	must(t, s.Close())
}

// What has been left reads nothing more: its memory can be another page's.
func TestRead_LeavingGivesUpThePage(t *testing.T) {
	s := openHidden(t, t.TempDir())
	r := written(t, s, 'x', segmentBytes, 3) // a row each
	again := 0
	for range 30 { // the pool may forget
		m := takePageMemory(3, 3*segmentBytes)
		_ = leaveEarly(t, s, r, m) // whether it was too late for an error is the database's business
		m.give()
		other := takePageMemory(3, 3*segmentBytes)
		if other == m {
			again++
		}
		want := bytes.Repeat([]byte("y"), 2*segmentBytes)
		other.add(want)
		row := other.take()
		wantNoPageRead(t)
		if !bytes.Equal(row, want) || len(other.chunks) > 0 {
			t.Fatal("a page that was left is read into another one")
		}
		other.give()
	}
	if again == 0 {
		t.Error("no memory was used again")
	}
	must(t, s.Close())
}

// leaveEarly reads a run to m, and leaves when its first row is there.
func leaveEarly(t *testing.T, s *Store, r buffer.Run, m *pageMemory) error {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	return s.snapshot(ctx, func(read reading) error {
		row, _, err := read.run(ctx, r.ID)
		if err != nil {
			return err
		}
		return read.pieces(ctx, row.key, read.q.segments, row.row, 0, m, func() bool {
			if len(m.chunks) == 0 {
				return true
			}
			leave()
			return len(m.chunks) < 2
		})
	})
}

func wantNoPageRead(t *testing.T) {
	t.Helper()
	beingRead.mu.Lock()
	defer beingRead.mu.Unlock()
	if n := len(beingRead.of); n > 0 {
		t.Errorf("%d pages are being read still", n)
	}
}
