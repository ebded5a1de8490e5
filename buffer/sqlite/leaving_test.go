package sqlite

import (
	"bytes"
	"context"
	"runtime"
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
				_, err = read.pieces(ctx, row.key, read.q.segments, []any{row.row, 0}, nil, func(chunks []buffer.Chunk) bool {
					if len(chunks) == 0 {
						return true
					}
					leave()
					waitForStack(t, "database/sql.(*Rows).close", "sync.(*RWMutex).Lock")
					return false
				})
				return err
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

// waitForStack waits until a goroutine is in all of these at once.
func waitForStack(t *testing.T, in ...string) {
	buf := make([]byte, 1<<20)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		for stack := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
			found := 0
			for _, name := range in {
				if bytes.Contains(stack, []byte(name)) {
					found++
				}
			}
			if found == len(in) {
				return
			}
		}
	}
	t.Error("nobody is there")
}
