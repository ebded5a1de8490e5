package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// BenchmarkRelease releases a million chunks beside a run that appends one chunk after the other, and prints
// how long its commits took before and meanwhile, and what became of the file.
func BenchmarkRelease(b *testing.B) {
	const runs, chunks = 250, 4000
	dir := b.TempDir()
	s := openStore(b, Config{Dir: dir})
	fill := func() {
		data := make([][]byte, chunks)
		for i := range data {
			data[i] = fmt.Appendf(nil, "data: %090d\n\n", i)
		}
		for range runs {
			log, _, err := s.Create(b.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
			must(b, err)
			must(b, log.Append(b.Context(), data, buffer.Completed, buffer.Closing{}))
		}
	}
	log, _ := started(b, s)
	var quiet, busy []time.Duration
	var sizes []int64
	for b.Loop() {
		fill()
		for range 1000 {
			quiet = append(quiet, appendOne(b, log))
		}
		swept := make(chan error)
		go func() {
			_, err := s.Sweep(b.Context(), time.Now().Add(time.Second), nil)
			swept <- err
		}()
		for done := false; !done; {
			select {
			case err := <-swept:
				must(b, err)
				done = true
			default:
				busy = append(busy, appendOne(b, log))
			}
		}
		info, err := os.Stat(filepath.Join(dir, fileName))
		must(b, err)
		sizes = append(sizes, info.Size())
	}
	b.ReportMetric(p999(quiet), "quiet-p99.9-ms")
	b.ReportMetric(p999(busy), "releasing-p99.9-ms")
	b.ReportMetric(float64(sizes[0])/(1<<20), "first-MiB")
	b.ReportMetric(float64(sizes[len(sizes)-1])/(1<<20), "last-MiB")
	must(b, s.Close())
}

func appendOne(b *testing.B, log buffer.Log) time.Duration {
	begun := time.Now()
	must(b, log.Append(b.Context(), [][]byte{make([]byte, 100)}, buffer.Streaming, buffer.Closing{}))
	return time.Since(begun)
}

func p999(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)*999/1000].Microseconds()) / 1000
}

// What is released makes room for what comes: the file does not grow with every generation of runs.
func TestSweep_RoomIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir, lazy: true})
	var sizes []int64
	for range 6 {
		for range 8 {
			log, _ := started(t, s)
			must(t, log.Append(t.Context(), [][]byte{make([]byte, 256<<10)}, buffer.Completed, buffer.Closing{}))
		}
		_, err := s.Sweep(t.Context(), time.Now().Add(time.Second), nil)
		must(t, err)
		must(t, s.checkpoint(s.writer.conn))
		info, err := os.Stat(filepath.Join(dir, fileName))
		must(t, err)
		sizes = append(sizes, info.Size())
	}
	if last := sizes[len(sizes)-1]; last > sizes[0]*5/4 {
		t.Errorf("the file grew from generation to generation: %d", sizes)
	}
	must(t, s.Close())
	wantSound(t, dir)
}
