package sqlite

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// BenchmarkAppend has many runs append one chunk of 100 bytes each, all at once and again and again.
func BenchmarkAppend(b *testing.B) {
	for _, sync := range []string{"full", "normal"} {
		for _, runs := range []int{1, 5, 100, 1000} {
			b.Run(fmt.Sprintf("%s/runs=%d", sync, runs), func(b *testing.B) { benchmarkAppend(b, sync, runs) })
		}
	}
}

func benchmarkAppend(b *testing.B, mode string, runs int) {
	s := openStore(b, Config{Dir: b.TempDir(), Sync: mode})
	logs := make([]buffer.Log, runs)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() {
			var err error
			logs[i], _, err = s.Create(b.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	chunk := make([]byte, 100)
	waits := make([][]time.Duration, runs)
	rounds := max(1, b.N/runs)
	b.ResetTimer()
	for i, log := range logs {
		wg.Go(func() {
			for range rounds {
				start := time.Now()
				if err := log.Append(b.Context(), [][]byte{chunk}, buffer.Streaming, buffer.Closing{}); err != nil {
					b.Error(err)
				}
				waits[i] = append(waits[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(waits...)))
	b.ReportMetric(float64(rounds*runs)/b.Elapsed().Seconds(), "chunks/s")
	b.ReportMetric(float64(all[len(all)*999/1000].Microseconds())/1000, "p99.9-ms")
	b.StopTimer()
	must(b, s.Close())
}

// BenchmarkRead is what a tailer at the head costs, with and without something new.
func BenchmarkRead(b *testing.B) {
	s := openStore(b, Config{Dir: b.TempDir(), lazy: true})
	log, r := started(b, s)
	for range 100 {
		must(b, log.Append(b.Context(), [][]byte{make([]byte, 100)}, buffer.Streaming, buffer.Closing{}))
	}
	for name, from := range map[string]int64{"head": 100, "behind": 50} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Read(b.Context(), r.ID, from, 1<<16); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	must(b, s.Close())
}

// BenchmarkReplay reads an ended run of 100,000 chunks of 100 bytes out of the file, page by page.
func BenchmarkReplay(b *testing.B) {
	s := openStore(b, Config{Dir: b.TempDir(), lazy: true, Window: -1})
	log, r := started(b, s)
	const chunks, size = 100_000, 100
	for range chunks / 1000 {
		must(b, log.Append(b.Context(), slices.Repeat([][]byte{make([]byte, size)}, 1000), buffer.Streaming, buffer.Closing{}))
	}
	must(b, log.Append(b.Context(), nil, buffer.Completed, buffer.Closing{}))
	b.SetBytes(chunks * size)
	b.ReportAllocs()
	for b.Loop() {
		for from := int64(0); from < chunks; {
			page, err := s.Read(b.Context(), r.ID, from, 256<<10)
			must(b, err)
			from += int64(len(page.Chunks))
		}
	}
	b.StopTimer()
	must(b, s.Close())
}
