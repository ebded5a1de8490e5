package sqlite

import (
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// TestQueue_CallsThatBeginDoNotHoldUpAnswers puts a thousand claims before one append.
func TestQueue_CallsThatBeginDoNotHoldUpAnswers(t *testing.T) {
	q := newQueue()
	put := func(o op) *request {
		r := &request{op: o, chunks: 1, done: make(chan struct{})}
		if err := q.put(r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const claims = 1000
	for range claims {
		put(&create{})
	}
	answer := put(&appendOp{state: buffer.Streaming})
	batch := q.take()
	if batch[0] != answer || len(batch) != 1+batchSteps {
		t.Fatalf("the first transaction has %d requests, want the append and %d claims", len(batch), batchSteps)
	}
	taken := len(batch)
	q.close()
	for batch := q.take(); batch != nil; batch = q.take() {
		taken += len(batch)
	}
	if taken != claims+1 {
		t.Errorf("%d requests were taken, want %d", taken, claims+1)
	}
}
