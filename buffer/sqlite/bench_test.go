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
			b.Run(fmt.Sprintf("%s/runs=%d", sync, runs), func(b *testing.B) { benchmarkAppend(b, Config{Sync: sync}, runs) })
		}
	}
}

// BenchmarkEncryption is what encryption costs an append.
func BenchmarkEncryption(b *testing.B) {
	for name, keys := range map[string][]Key{"clear": nil, "encrypted": {key("one")}} {
		for _, runs := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/runs=%d", name, runs), func(b *testing.B) { benchmarkAppend(b, Config{Keys: keys, lazy: true}, runs) })
		}
	}
}

// BenchmarkEncryption_Replay reads a run of 10 MiB from the file.
func BenchmarkEncryption_Replay(b *testing.B) {
	for name, keys := range map[string][]Key{"clear": nil, "encrypted": {key("one")}} {
		b.Run(name, func(b *testing.B) {
			s := openHidden(b, b.TempDir(), keys...)
			log, r := started(b, s)
			for range 100 {
				must(b, log.Append(b.Context(), slices.Repeat([][]byte{make([]byte, 100)}, 1024), buffer.Streaming, buffer.Closing{}))
			}
			must(b, log.Append(b.Context(), nil, buffer.Completed, buffer.Closing{}))
			b.SetBytes(100 * 1024 * 100)
			for b.Loop() {
				for from := int64(0); from < 100*1024; {
					page, err := s.Read(b.Context(), r.ID, from, 256<<10)
					must(b, err)
					from = page.Next(from)
					page.Recycle()
				}
			}
			b.StopTimer()
			must(b, s.Close())
		})
	}
}

func benchmarkAppend(b *testing.B, cfg Config, runs int) {
	cfg.Dir = b.TempDir()
	s := openStore(b, cfg)
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
			page.Recycle()
		}
	}
	b.StopTimer()
	must(b, s.Close())
}

// BenchmarkFlat has a hundred runs append 200 chunks of 100 bytes each, all at once and again and again.
func BenchmarkFlat(b *testing.B) {
	for _, size := range []int{20, 200, 700} {
		b.Run(fmt.Sprintf("chunks=%d", size), func(b *testing.B) { benchmarkFlat(b, 100, size) })
	}
}

func benchmarkFlat(b *testing.B, runs, size int) {
	s := openStore(b, Config{Dir: b.TempDir()})
	var wg sync.WaitGroup
	rounds := max(1, b.N/runs/size)
	b.SetBytes(100)
	b.ReportAllocs()
	for range runs {
		wg.Go(func() {
			log, _, err := s.Create(b.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
			if err != nil {
				b.Error(err)
			}
			for range rounds {
				chunks := make([][]byte, size)
				data := make([]byte, size*100)
				for i := range chunks {
					chunks[i] = data[i*100 : i*100+100]
				}
				if err := log.Append(b.Context(), chunks, buffer.Streaming, buffer.Closing{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	must(b, s.Close())
}
