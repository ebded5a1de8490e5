package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// play is a fleet that something happens to while answers come.
type play struct {
	*fleet
	rnd     *rand.Rand
	streams int
}

// Every stream lasts for perStream/rate, some seconds, and something happens in its middle.
const (
	perStream = 400
	rate      = 50
	middle    = 2 * time.Second
	asleep    = 6 * time.Second // longer than a lease
)

// way is one of ending what runs. owner is the node of the streams that it is about; interrupts says that
// their runs do not survive it.
type way struct {
	name       string
	interrupts bool
	do         func(ctx context.Context, p *play, owner int) error
}

var ways = []way{
	{"kill -9 a server", false, func(_ context.Context, p *play, _ int) error { return p.servePause(1) }},
	{"kill -9 two servers", false, func(_ context.Context, p *play, _ int) error { return p.servePause(2) }},
	{"kill -9 all servers", false, func(_ context.Context, p *play, _ int) error { return p.servePause(size) }},
	{"roll the servers", false, func(ctx context.Context, p *play, _ int) error { return p.roll(ctx) }},
	{"kill -9 the owner", true, func(ctx context.Context, p *play, owner int) error {
		p.nodes[owner].kill()
		return nil
	}},
	{"pause the owner, and wake it", true, func(ctx context.Context, p *play, owner int) error {
		if err := p.nodes[owner].pause(); err != nil {
			return err
		}
		sleep(ctx, asleep)
		return p.nodes[owner].resume()
	}},
	{"roll the nodes", false, func(ctx context.Context, p *play, _ int) error {
		for i := range p.nodes {
			p.nodes[i].stop()
			if err := errors.Join(p.nodes[i].start(), p.ready(ctx, i)); err != nil {
				return err
			}
		}
		return nil
	}},
}

// servePause kills n servers, chosen by lot, and starts them again.
func (p *play) servePause(n int) error {
	chosen := p.rnd.Perm(size)[:n]
	for _, i := range chosen {
		p.servers[i].kill()
	}
	starting := make(chan error, n) // without a majority none of them gets ready alone
	for _, i := range chosen {
		go func() { starting <- p.servers[i].start() }()
	}
	var err error
	for range chosen {
		err = errors.Join(err, <-starting)
	}
	return err
}

// roll ends one server after the other as an operator does, and waits until the nodes are ready in between.
func (p *play) roll(ctx context.Context) error {
	for _, s := range p.servers {
		s.stop()
		if err := s.start(); err != nil {
			return err
		}
		sleep(ctx, time.Second) // it takes in what it has missed
		for i := range p.nodes {
			if err := p.ready(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// try begins the streams, has them read on other nodes, does it in their middle, and counts when all have
// ended. silence is the longest time in which no reader of any stream saw anything.
func (p *play) try(ctx context.Context, w way) (t tally, silence time.Duration, err error) {
	owner := p.rnd.IntN(size)
	var all []*stream
	for range p.streams {
		s, err := p.begin(ctx, owner, perStream, rate)
		if err != nil {
			return t, 0, err
		}
		all = append(all, s)
	}
	var reading sync.WaitGroup
	failed := make(chan error, len(all))
	for i, s := range all {
		reading.Go(func() {
			if _, err := s.read(ctx, (owner+1+i%(size-1))%size); err != nil {
				failed <- err
			}
		})
	}
	watched, watching := context.WithCancel(ctx)
	var quiet atomic.Int64
	var watch sync.WaitGroup
	watch.Go(func() { quiet.Store(int64(longestSilence(watched, all))) })
	sleep(ctx, middle)
	err = w.do(ctx, p, owner)
	reading.Wait()
	watching()
	watch.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	if err != nil {
		return t, 0, err
	}
	for i, n := range p.nodes { // what was killed is there for the next
		select {
		case <-n.ended:
			err = n.start()
		default:
		}
		if err == nil {
			err = p.ready(ctx, i)
		}
		if err != nil {
			return t, 0, fmt.Errorf("node %d: %w", i, err)
		}
	}
	t, err = p.count(ctx, (owner+1)%size, all)
	return t, time.Duration(quiet.Load()), err
}

// longestSilence watches the readers until all of them are done: they have seen all events, or ctx ends.
func longestSilence(ctx context.Context, all []*stream) (longest time.Duration) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last, at := int64(-1), time.Now()
	for {
		select {
		case <-ctx.Done(): // the readers of a run that was cut were told just now
			return max(longest, time.Since(at))
		case <-tick.C:
		}
		sum, done := int64(0), true
		for _, s := range all {
			n := s.next.Load()
			sum += n
			done = done && n == perStream
		}
		if sum != last {
			longest = max(longest, time.Since(at))
			last, at = sum, time.Now()
		}
		if done {
			return longest
		}
	}
}
