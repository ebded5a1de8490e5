package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

type benchCmd struct {
	Data string        `arg:"" optional:"" type:"path" default:"." help:"A folder on the disk that is meant. A folder for the measurement is made in it, and removed."`
	For  time.Duration `default:"2s" placeholder:"DURATION" help:"How long each of the four measurements takes, up to 1m."`
	output
}

// measured is what a machine carries. Latencies are milliseconds.
type measured struct {
	FlushP50   float64 `json:"flush_p50_ms"`
	FlushP99   float64 `json:"flush_p99_ms"`
	Commits    float64 `json:"commits_per_second"` // of one stream, an event each
	CommitP50  float64 `json:"commit_p50_ms"`
	CommitP99  float64 `json:"commit_p99_ms"`
	Events     float64 `json:"events_per_second"` // of many streams
	Streams    int     `json:"streams"`
	ReadMBytes float64 `json:"read_mbytes_per_second"` // of one replay from the file
}

const (
	benchStreams = 128
	benchEvent   = 200 // bytes, as an event of a chat stream has
	benchBurst   = 8   // events that a stream brings at once, as sockets do
	benchLongest = time.Minute
)

// Run measures the disk of a folder and the log on it: what one stream waits for a commit, and how many
// events many streams can store.
func (c benchCmd) Run(ctx context.Context, app *kong.Kong) error {
	if c.For <= 0 || c.For > benchLongest {
		return misused("--for: %s must be above 0 and at most %s", c.For, benchLongest)
	}
	dir, err := os.MkdirTemp(c.Data, "spool-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir) // nothing in it is kept
	told, done := progress(app.Stderr, "bench", false)
	m, err := c.measure(ctx, dir, told)
	done()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return c.print(app.Stdout, m, m.table)
}

func (m measured) table(w io.Writer) {
	fmt.Fprintf(w, "a flush of the disk\tp50 %.2f ms\tp99 %.2f ms\n", m.FlushP50, m.FlushP99)
	fmt.Fprintf(w, "a commit of one stream\tp50 %.2f ms\tp99 %.2f ms\t%.0f a second\n", m.CommitP50, m.CommitP99, m.Commits)
	fmt.Fprintf(w, "events of %d streams\t%.0f a second\n", m.Streams, m.Events)
	fmt.Fprintf(w, "one replay\t%.0f MB a second\n", m.ReadMBytes)
}

func (c benchCmd) measure(ctx context.Context, dir string, told sqlite.Progress) (m measured, err error) {
	part := func(n int64) {
		if told != nil {
			told(n, 4)
		}
	}
	flushes, err := flushTimes(ctx, dir, c.For)
	if err != nil {
		return m, err
	}
	m.FlushP50, m.FlushP99 = quantile(flushes, 50), quantile(flushes, 99)
	part(1)
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: dir, Window: -1})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var commits []time.Duration
	if commits, _, err = stream(ctx, s, 1, c.For); err != nil {
		return m, err
	}
	m.CommitP50, m.CommitP99, m.Commits = quantile(commits, 50), quantile(commits, 99), float64(len(commits))/c.For.Seconds()
	part(2)
	var events atomic.Int64
	var last ulid.ULID
	if last, err = streams(ctx, s, c.For, &events); err != nil {
		return m, err
	}
	m.Streams, m.Events = benchStreams, float64(events.Load())/c.For.Seconds()
	part(3)
	m.ReadMBytes, err = replay(ctx, s, last, c.For)
	part(4)
	return m, err
}

// flushTimes writes a page and flushes it, again and again: what a commit waits for.
func flushTimes(ctx context.Context, dir string, d time.Duration) (all []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "flush-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	for begun := time.Now(); len(all) == 0 || time.Since(begun) < d; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := time.Now()
		if _, err := f.WriteAt(page, int64(len(all)%1024)*int64(len(page))); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(at))
	}
	return all, nil
}

// stream appends to a run for a while, burst events at a time, and returns how long each commit took.
func stream(ctx context.Context, s *sqlite.Store, burst int, d time.Duration) (all []time.Duration, id ulid.ULID, err error) {
	log, run, err := s.Create(ctx, buffer.Run{ID: ulid.Make(), Caller: "bench", State: buffer.Idle, TTL: time.Hour})
	if err != nil {
		return nil, id, err
	}
	row := buffer.Attempt{N: 1, Sent: time.Now()}
	if err := log.Attempt(ctx, row); err != nil {
		return nil, id, err
	}
	events := make([][]byte, burst)
	for i := range events {
		events[i] = make([]byte, benchEvent)
	}
	for begun := time.Now(); len(all) == 0 || time.Since(begun) < d; {
		at := time.Now()
		if err := log.Append(ctx, events, buffer.Streaming, buffer.Closing{}); err != nil {
			return nil, id, err
		}
		all = append(all, time.Since(at))
	}
	row.Ended = time.Now()
	return all, run.ID, log.Append(ctx, nil, buffer.Completed, buffer.Closing{Attempt: &row})
}

// streams has many streams append at once, and returns one of their runs.
func streams(ctx context.Context, s *sqlite.Store, d time.Duration, events *atomic.Int64) (ulid.ULID, error) {
	ids, errs := make([]ulid.ULID, benchStreams), make([]error, benchStreams)
	var work sync.WaitGroup
	for i := range benchStreams {
		work.Go(func() {
			var commits []time.Duration
			commits, ids[i], errs[i] = stream(ctx, s, benchBurst, d)
			events.Add(int64(len(commits)) * benchBurst)
		})
	}
	work.Wait()
	return ids[0], errors.Join(errs...)
}

// replay reads a run again and again, and returns how many megabytes a second come.
func replay(ctx context.Context, s *sqlite.Store, id ulid.ULID, d time.Duration) (float64, error) {
	var bytes, from int64
	begun := time.Now()
	for bytes == 0 || time.Since(begun) < d {
		page, err := s.Read(ctx, id, from, 1<<20)
		if err != nil {
			return 0, err
		}
		for _, c := range page.Chunks {
			bytes += int64(len(c.Data))
			from = c.Pos + 1
		}
		page.GiveBack() // as a reader does that has written it
		if from == page.Run.Head {
			from = 0
		}
	}
	return float64(bytes) / 1e6 / time.Since(begun).Seconds(), nil
}

// quantile is the q-th percentile in milliseconds.
func quantile(all []time.Duration, q int) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[min(len(sorted)*q/100, len(sorted)-1)].Microseconds()) / 1000
}
