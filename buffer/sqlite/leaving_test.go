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
	log, r := started(t, s)
	for range 3 {
		must(t, log.Append(t.Context(), [][]byte{bytes.Repeat([]byte("x"), segmentBytes)}, buffer.Streaming, buffer.Closing{}))
	}
	must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
	left := make(chan error, readers+1)
	for range readers + 1 {
		go func() {
			ctx, leave := context.WithCancel(t.Context())
			left <- s.snapshot(ctx, func(read reading) error {
				row, _, err := read.run(ctx, r.ID)
				if err != nil {
					return err
				}
				m := new(pageMemory)
				return read.pieces(ctx, row.key, read.q.segments, row.row, 0, m, func() bool {
					if len(m.chunks) == 0 {
						return true
					}
					leave()
					return len(m.chunks) < 2
				})
			})
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
	must(t, s.Close())
}
