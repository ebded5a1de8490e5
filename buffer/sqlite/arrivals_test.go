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

// TestArrivals_AQuietRunHoldsUpNothing has one run fall silent at the front of the table and of the window, while
// others come and go: neither grows for it.
func TestArrivals_AQuietRunHoldsUpNothing(t *testing.T) {
	for _, row := range []struct {
		name          string
		chunks, bytes int // of each of the other runs
	}{
		{"beside arrivals", 100, 1000},
		{"beside segments alone", 4, segmentBytes},
	} {
		t.Run(row.name, func(t *testing.T) {
			const limit = 2 * segmentBytes // one run alone is never too much
			s := openStore(t, Config{Dir: t.TempDir(), lazy: true, Window: 16 * limit})
			s.writer.arrivals.limit = limit
			quiet, r := started(t, s)
			must(t, quiet.Append(t.Context(), [][]byte{[]byte("quiet")}, buffer.Streaming, buffer.Closing{}))
			a, win := &s.writer.arrivals, s.window
			var held, stretch int64 // the most of each
			for range 24 {
				log, _ := started(t, s)
				for range row.chunks {
					must(t, log.Append(t.Context(), [][]byte{make([]byte, row.bytes)}, buffer.Streaming, buffer.Closing{}))
				}
				must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
				held, stretch = max(held, win.held), max(stretch, a.stretch)
			}
			if held > win.limit+2*int64(row.bytes+chunkCost) {
				t.Errorf("the window held %d bytes, its limit is %d", held, win.limit)
			}
			if stretch > (maxStretch+1)*limit {
				t.Errorf("the table took %d bytes, and %d may wait", stretch, limit)
			}
			var waiting int64
			for _, r := range win.runs {
				waiting += r.waiting
			}
			if a.held != waiting {
				t.Errorf("%d bytes are held, and the runs' are %d", a.held, waiting)
			}
			page, err := s.Read(t.Context(), r.ID, 0, 1<<10)
			if err != nil || len(page.Chunks) != 1 || string(page.Chunks[0].Data) != "quiet" {
				t.Errorf("the quiet run: %v, %v", page.Chunks, err)
			}
			must(t, s.Close())
		})
	}
}
