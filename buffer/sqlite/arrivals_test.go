package sqlite

import (
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// TestArrivals_GoIntoSegmentsAFewRunsAtATime has many runs go on in step until the arrivals are too many: then
// as much goes into segments as comes, and never the chunks of all runs within a few commits.
func TestArrivals_GoIntoSegmentsAFewRunsAtATime(t *testing.T) {
	const runs, limit = 40, 64 << 10
	s := openStore(t, Config{Dir: t.TempDir(), lazy: true})
	s.writer.arrivals.limit = limit
	logs := make([]buffer.Log, runs)
	for i := range logs {
		logs[i], _ = started(t, s)
	}
	commit := func(log buffer.Log) int64 {
		t.Helper()
		must(t, log.Append(t.Context(), [][]byte{make([]byte, 100)}, buffer.Streaming, buffer.Closing{}))
		return s.writer.arrivals.held
	}
	for range 3 * limit / (100 + chunkCost) / runs {
		for _, log := range logs {
			if held := commit(log); held > limit+100+chunkCost {
				t.Fatalf("%d bytes are held, %d are allowed", held, limit)
			}
		}
	}
	for range 2 {
		for _, log := range logs {
			if held := commit(log); held < limit*3/4 {
				t.Fatalf("%d bytes are held: far more went into segments than had to", held)
			}
		}
	}
	must(t, s.Close())
}
