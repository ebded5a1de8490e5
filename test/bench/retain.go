package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// generations of runs are stored and released one after the other: the file should not grow with them.
const generations = 3

// retain releases many chunks beside a run that appends one after the other, through the engine itself. What
// is measured is how long its commits take before and meanwhile, and what becomes of the file.
func (j job) retain(ctx context.Context) (o outcome, err error) {
	store, err := sqlite.Open(ctx, sqlite.Config{Dir: j.Data, Sync: "full", Log: zap.NewNop()})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	writer, _, err := store.Create(ctx, buffer.Run{ID: ulid.Make(), State: buffer.Idle, TTL: time.Hour})
	if err != nil {
		return o, err
	}
	var before, meanwhile histogram
	var sizes []float64
	for range generations {
		if err := j.generation(ctx, store); err != nil {
			return o, err
		}
		for until := time.Now().Add(j.Measure / generations); time.Now().Before(until); {
			if err := timeCommit(ctx, writer, &before); err != nil {
				return o, err
			}
		}
		swept := make(chan error, 1)
		begun := time.Now()
		go func() {
			_, err := store.Sweep(ctx, time.Now().Add(time.Second), nil)
			swept <- err
		}()
		if err := commitUntil(ctx, writer, swept, &meanwhile); err != nil {
			return o, err
		}
		o.Seconds += time.Since(begun).Seconds()
		info, err := os.Stat(filepath.Join(j.Data, "spool.db"))
		if err != nil {
			return o, err
		}
		sizes = append(sizes, float64(info.Size()))
	}
	o.Events = generations * int64(j.Streams) * j.Events
	o.LatencyP999, o.ReleasingP999 = before.quantile(0.999), meanwhile.quantile(0.999)
	o.Grown = sizes[generations-1] / sizes[0]
	o.Checks = tally{Events: o.Events}
	return o, nil
}

// generation stores runs that have ended and whose time is over.
func (j job) generation(ctx context.Context, store *sqlite.Store) error {
	chunks := make([][]byte, j.Events)
	for i := range chunks {
		chunks[i] = keptEvent(i)
	}
	for range j.Streams {
		log, _, err := store.Create(ctx, buffer.Run{ID: ulid.Make(), State: buffer.Idle})
		if err != nil {
			return err
		}
		if err := log.Append(ctx, chunks, buffer.Completed, buffer.Closing{}); err != nil {
			return err
		}
	}
	return nil
}

// commitUntil appends, once at least, until something comes from done.
func commitUntil(ctx context.Context, log buffer.Log, done <-chan error, times *histogram) error {
	for {
		if err := timeCommit(ctx, log, times); err != nil {
			return errors.Join(err, <-done)
		}
		select {
		case err := <-done:
			return err
		default:
		}
	}
}

func timeCommit(ctx context.Context, log buffer.Log, times *histogram) error {
	begun := time.Now()
	err := log.Append(ctx, [][]byte{make([]byte, eventSize)}, buffer.Streaming, buffer.Closing{})
	times.add(time.Since(begun))
	return err
}
