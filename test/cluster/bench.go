package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/jetstream"
)

// bench measures what the cluster carries, and prints each goal beside it. All of it is on one disk: what is
// slower here than it should be may be the machine.
func bench(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	runs := flags.Int("runs", 500, "live runs, of 50 events a second each")
	lasting := flags.Duration("for", 10*time.Second, "how long they last")
	only := flags.String("only", "", "wakes, carries, rolls or death alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return staged(ctx, func(f *fleet) error {
		b := &measuring{fleet: f}
		defer b.close()
		if err := b.open(ctx); err != nil {
			return err
		}
		fmt.Printf("%-44s  %10s  %10s\n", "", "goal", "measured")
		var all []error
		for _, part := range []struct {
			name    string
			measure func() error
		}{
			{"wakes", func() error { return b.wakes(ctx) }},
			{"carries", func() error { return b.carries(ctx, *runs, *lasting) }},
			{"rolls", func() error { return b.rolls(ctx) }},
			{"death", func() error { return b.death(ctx) }},
		} {
			if *only == "" || *only == part.name {
				all = append(all, part.measure())
			}
		}
		return errors.Join(all...)
	})
}

// measuring is a fleet with stores of its own, which are nodes like the others.
type measuring struct {
	*fleet
	stores []*jetstream.Store
}

func (b *measuring) open(ctx context.Context) error {
	for range size {
		nc, err := jetstream.Dial(jetstream.Access{URL: b.store})
		if err != nil {
			return err
		}
		s, err := jetstream.Open(ctx, jetstream.Config{Conn: nc})
		if err != nil {
			return err
		}
		b.stores = append(b.stores, s)
	}
	return nil
}

func (b *measuring) close() {
	for _, s := range b.stores {
		_ = s.Close() // it never fails
	}
}

func report(what, goal string, measured any, met bool) {
	verdict := ""
	if !met {
		verdict = "  missed"
	}
	fmt.Printf("%-44s  %10s  %10v%s\n", what, goal, measured, verdict)
}

// atMost reports a time that should not be longer.
func atMost(what string, goal, measured time.Duration) {
	report(what, "≤ "+goal.String(), measured.Round(100*time.Microsecond), measured <= goal)
}

func quantile(all []time.Duration, q int) time.Duration {
	slices.Sort(all)
	return all[min(len(all)*q/100, len(all)-1)]
}

// begun is a live run of a store.
func begun(ctx context.Context, s *jetstream.Store) (buffer.Log, ulid.ULID, error) {
	log, r, err := s.Create(ctx, buffer.Run{ID: ulid.Make(), Caller: "bench", State: buffer.Idle, TTL: time.Hour})
	if err == nil {
		err = log.Attempt(ctx, buffer.Attempt{N: 1, Sent: time.Now()})
	}
	return log, r.ID, err
}

const event = 200 // bytes

// wakes measures how long after an acknowledgement a reader on another node has read the event.
func (b *measuring) wakes(ctx context.Context) error {
	const events, pause = 300, 10 * time.Millisecond
	log, id, err := begun(ctx, b.stores[0])
	if err != nil {
		return err
	}
	seen := make(chan time.Time, events)
	read := make(chan error, 1)
	go func() {
		defer close(seen)
		read <- follow(ctx, b.stores[1], id, events, seen)
	}()
	var late []time.Duration
	for range events {
		if err := log.Append(ctx, [][]byte{make([]byte, event)}, buffer.Streaming, buffer.Closing{}); err != nil {
			return err
		}
		stored := time.Now()
		at, more := <-seen
		if !more {
			return fmt.Errorf("the reader of another node ended early: %w", <-read)
		}
		late = append(late, max(0, at.Sub(stored))) // a reader may be told before the writer
		sleep(ctx, pause)
	}
	atMost("another node's reader is woken, p50", 5*time.Millisecond, quantile(late, 50))
	atMost("another node's reader is woken, p99", 20*time.Millisecond, quantile(late, 99))
	return log.Append(ctx, nil, buffer.Completed, buffer.Closing{})
}

// follow reads n events as every reader does, and says when it had each.
func follow(ctx context.Context, s *jetstream.Store, id ulid.ULID, n int64, seen chan<- time.Time) error {
	for next := int64(0); next < n; {
		changed, stop := s.Watch(id)
		page, err := s.Read(ctx, id, next, 1<<20)
		if err != nil {
			stop()
			return err
		}
		for range page.Chunks {
			seen <- time.Now()
			next++
		}
		if len(page.Chunks) == 0 {
			<-changed
		}
		stop()
	}
	return nil
}

// carries has many runs at once, which bring an event each 20 ms: what comes while an append is under way
// is the next one. The stores that measure are all nodes that there are meanwhile.
func (b *measuring) carries(ctx context.Context, runs int, lasting time.Duration) error {
	const each = 20 * time.Millisecond
	for i := range size {
		if err := b.node(i).stop(); err != nil {
			return err
		}
	}
	late, took, err := b.load(ctx, runs, each, lasting)
	if err != nil {
		return err
	}
	for i := range size {
		if err := errors.Join(b.node(i).start(), b.ready(ctx, i)); err != nil {
			return err
		}
	}
	perSecond, asked := float64(len(late))/took.Seconds(), float64(runs)*float64(time.Second/each)
	report(fmt.Sprintf("events a second of %d runs", runs), fmt.Sprintf("≥ %.0f", 0.96*asked), fmt.Sprintf("%.0f", perSecond), perSecond >= 0.96*asked)
	atMost("from an event to its acknowledgement, p99", 250*time.Millisecond, quantile(late, 99))
	return nil
}

// load appends for a while, and returns how long each event took, and how long all of it.
func (b *measuring) load(ctx context.Context, runs int, each, lasting time.Duration) (late []time.Duration, took time.Duration, err error) {
	var logs []buffer.Log
	for i := range runs {
		log, _, err := begun(ctx, b.stores[i%size])
		if err != nil {
			return nil, 0, err
		}
		logs = append(logs, log)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	start := time.Now()
	for i, log := range logs {
		work.Go(func() {
			mine, failed := pace(ctx, log, start.Add(each*time.Duration(i)/time.Duration(runs)), each, int(lasting/each))
			mu.Lock()
			defer mu.Unlock()
			late, err = append(late, mine...), errors.Join(err, failed)
		})
	}
	work.Wait()
	return late, time.Since(start), err
}

// pace appends n events that are due one after the other, all that are due at once.
func pace(ctx context.Context, log buffer.Log, first time.Time, each time.Duration, n int) (late []time.Duration, err error) {
	due := func(i int) time.Time { return first.Add(each * time.Duration(i)) }
	for i := 0; i < n; {
		sleep(ctx, time.Until(due(i)))
		var chunks [][]byte
		from := i
		for ; i < n && !due(i).After(time.Now()); i++ {
			chunks = append(chunks, make([]byte, event))
		}
		if err := log.Append(ctx, chunks, buffer.Streaming, buffer.Closing{}); err != nil {
			return late, err
		}
		stored := time.Now()
		for k := from; k < i; k++ {
			late = append(late, stored.Sub(due(k)))
		}
	}
	return late, log.Append(ctx, nil, buffer.Completed, buffer.Closing{})
}

// rolls ends one server after the other as an operator does, under some load.
func (b *measuring) rolls(ctx context.Context) error {
	const runs, each, lasting = 20, 20 * time.Millisecond, 30 * time.Second
	var stop atomic.Bool
	rolled := make(chan error, 1)
	go func() {
		defer stop.Store(true)
		rolled <- (&play{fleet: b.fleet}).roll(ctx)
	}()
	var worst time.Duration
	for !stop.Load() {
		late, _, err := b.load(ctx, runs, each, lasting/10)
		if err != nil {
			return err
		}
		worst = max(worst, quantile(late, 100))
	}
	atMost("the longest append while all servers roll", time.Second, worst)
	return <-rolled
}

// death kills a node, and measures when the readers of its runs are told on another.
func (b *measuring) death(ctx context.Context) error {
	s, err := b.begin(ctx, 0, 0, rate)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	go func() {
		_, err := s.part(ctx, 1, &s.next)
		told <- err
	}()
	sleep(ctx, middle)
	b.node(0).kill()
	at := time.Now()
	if err := <-told; err != nil {
		return err
	}
	atMost("a node's death is told to readers elsewhere", 2500*time.Millisecond, time.Since(at))
	return nil
}
