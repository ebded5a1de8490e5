package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/tail"
)

// wake has many cursors follow one run in this process, without sockets: what is measured is the time
// from the commit's being known to the last of them, and how often the log's file was read for that.
func (j job) wake(ctx context.Context) (o outcome, err error) {
	store, err := sqlite.Open(ctx, sqlite.Config{Dir: j.Data, Sync: "full", Log: zap.NewNop()})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log, run, err := store.Create(ctx, buffer.Run{ID: ulid.Make(), State: buffer.Idle, TTL: time.Hour})
	if err != nil {
		return o, err
	}
	events := max(1, int(j.Measure.Seconds()*float64(j.Rate)))
	last := make([]atomic.Int64, events) // when the last cursor had it, unix nanoseconds
	var cursors sync.WaitGroup
	var broken atomic.Int64
	for range j.Streams {
		cursors.Go(func() {
			if err := follow(ctx, tail.New(store, run.ID, 0), last); err != nil {
				broken.Add(1)
			}
		})
	}
	if err := pause(ctx, settle); err != nil {
		return o, err
	}
	reads, err := processIO("self", ioReads)
	if err != nil {
		return o, err
	}
	published, err := publish(ctx, log, events, time.Second/time.Duration(j.Rate))
	cursors.Wait()
	if err != nil {
		return o, err
	}
	after, err := processIO("self", ioReads)
	if err != nil {
		return o, err
	}
	var waits histogram
	for i := range last {
		waits.add(time.Duration(last[i].Load() - published[i]))
	}
	o.LatencyP50, o.LatencyP99 = waits.quantile(0.5), waits.quantile(0.99)
	o.Reads = float64(after-reads) / float64(events)
	o.Checks = tally{Events: int64(events) * int64(j.Streams), Broken: broken.Load()}
	return o, nil
}

// follow reads to the end and notes when each event has come.
func follow(ctx context.Context, c *tail.Cursor, last []atomic.Int64) error {
	next := int64(0)
	for {
		page, err := c.Next(ctx)
		if errors.Is(err, io.EOF) && next == int64(len(last)) {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now().UnixNano()
		for _, chunk := range page.Chunks {
			if chunk.Pos != next {
				return fmt.Errorf("position %d came, not %d", chunk.Pos, next)
			}
			next++
			for t := &last[chunk.Pos]; ; {
				old := t.Load()
				if old >= now || t.CompareAndSwap(old, now) {
					break
				}
			}
		}
	}
}

// publish commits one event after the other, and says when each was known to be stored.
func publish(ctx context.Context, log buffer.Log, events int, period time.Duration) (published []int64, err error) {
	for i := range events {
		state := buffer.Streaming
		if i == events-1 {
			state = buffer.Completed
		}
		if err := log.Append(ctx, [][]byte{make([]byte, eventSize)}, state, buffer.Closing{}); err != nil {
			return nil, err
		}
		published = append(published, time.Now().UnixNano())
		if err := pause(ctx, period); err != nil {
			return nil, err
		}
	}
	return published, nil
}
