package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

// way is one of ending what runs. owner is the node of the streams that it is about.
type way struct {
	name       string
	interrupts bool // their runs do not survive it
	everywhere bool // they are of all nodes, and new calls are made meanwhile: nobody notices
	do         func(ctx context.Context, p *play, owner int) error
}

var ways = []way{
	{name: "kill -9 a server", do: func(_ context.Context, p *play, _ int) error { return p.servePause(1) }},
	{name: "kill -9 two servers", do: func(_ context.Context, p *play, _ int) error { return p.servePause(2) }},
	{name: "kill -9 all servers", do: func(_ context.Context, p *play, _ int) error { return p.servePause(size) }},
	{name: "roll the servers", do: func(ctx context.Context, p *play, _ int) error { return p.roll(ctx) }},
	{name: "kill -9 the owner", interrupts: true, do: func(_ context.Context, p *play, owner int) error {
		p.node(owner).kill()
		return nil
	}},
	{name: "pause the owner, and wake it", interrupts: true, do: func(ctx context.Context, p *play, owner int) error {
		if err := p.node(owner).pause(); err != nil {
			return err
		}
		sleep(ctx, asleep)
		return p.node(owner).resume()
	}},
	{name: "upgrade the nodes", everywhere: true, do: func(ctx context.Context, p *play, _ int) error { return p.upgrade(ctx) }},
	{name: "stop and start the nodes", everywhere: true, do: func(ctx context.Context, p *play, _ int) error { return p.restart(ctx) }},
}

// upgrade puts a node of the other version in the place of each: the new one comes first, and when it is ready,
// the old one is asked to end. What that one has begun it drains, while the next ones are upgraded.
func (p *play) upgrade(ctx context.Context) error {
	p.version = versions[(slices.Index(versions[:], p.version)+1)%len(versions)]
	var left []*node
	for i := range size {
		by, err := p.startNode(fmt.Sprint("node ", i, " ", p.version), on(p.store)...)
		if err != nil {
			return err
		}
		left = append(left, p.replace(i, by))
		if err := errors.Join(p.ready(ctx, i), left[i].ask()); err != nil {
			return err
		}
	}
	for _, n := range left {
		if err := n.stopped(); err != nil {
			return err
		}
	}
	return nil
}

// restart ends each node, which drains what it has begun, and starts it again where it was.
func (p *play) restart(ctx context.Context) error {
	for i := range size {
		n := p.node(i)
		if err := errors.Join(n.stop(), n.start(), p.ready(ctx, i)); err != nil {
			return err
		}
	}
	return nil
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
		if err := errors.Join(s.stop(), s.start()); err != nil {
			return err
		}
		sleep(ctx, time.Second) // it takes in what it has missed
		for i := range size {
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

// try begins the streams, has them read on other nodes, or by callers who stay, does it in their middle, and
// counts when all have ended. silence is the longest time in which a reader saw nothing.
func (p *play) try(ctx context.Context, w way) (t tally, silence time.Duration, err error) {
	owner := p.rnd.IntN(size)
	all, err := p.streamsOf(ctx, owner, w.everywhere)
	if err != nil {
		return t, 0, err
	}
	var reading sync.WaitGroup
	failed := make(chan error, len(all)+1)
	for i, s := range all {
		reading.Go(func() {
			if _, err := s.read(ctx, (owner+1+i%(size-1))%size); err != nil {
				failed <- err
			}
		})
	}
	watched, watching := context.WithCancel(ctx)
	var quiet time.Duration
	var watch, calling sync.WaitGroup
	watch.Go(func() { quiet = longestSilence(watched, all) })
	done := make(chan struct{})
	if w.everywhere {
		calling.Go(func() { t.calls, t.failed = p.callers(ctx, done) })
	}
	sleep(ctx, middle)
	failed <- w.do(ctx, p, owner)
	close(done)
	calling.Wait()
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
	if err := p.revive(ctx); err != nil {
		return t, 0, err
	}
	seen, err := p.count(ctx, (owner+1)%size, all)
	return t.plus(seen), quiet, err
}

// streamsOf begins the streams, of one node or of all. Every second one's caller stays.
func (p *play) streamsOf(ctx context.Context, owner int, everywhere bool) (all []*stream, err error) {
	for i := range p.streams {
		begin, of := p.begin, owner
		if i%2 == 1 {
			begin = p.call
		}
		if everywhere {
			of = i % size
		}
		s, err := begin(ctx, of, perStream, rate)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// callers make one call after the other, of whichever node is ready, as they would through a balancer, until
// done. Of a node that drains they are sent to the next, and that is no failure.
func (p *play) callers(ctx context.Context, done <-chan struct{}) (calls, failed int) {
	const short = rate / 2 // events, half a second
	for of := 0; ; of = (of + 1) % size {
		select {
		case <-done:
			return calls, failed
		default:
		}
		if p.readiness(ctx, of) != nil {
			continue
		}
		s, err := p.call(ctx, of, short, rate)
		if errors.Is(err, errDraining) {
			continue
		}
		calls++
		whole := false
		if err == nil {
			whole, err = s.stay()
		}
		if err != nil || !whole {
			failed++
			fmt.Fprintf(p.log, "a call of node %d: whole %t, error %v\n", of, whole, err) // for people
		}
	}
}

// revive starts what was killed for the next try.
func (p *play) revive(ctx context.Context) error {
	for i := range size {
		n := p.node(i)
		select {
		case <-n.ended:
			if err := n.start(); err != nil {
				return err
			}
		default:
		}
		if err := p.ready(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

// longestSilence watches the readers until all of them are done: they have seen all events, or ctx ends. It is
// the longest of any one of them.
func longestSilence(ctx context.Context, all []*stream) (longest time.Duration) {
	type reader struct {
		seen int64
		at   time.Time
	}
	readers := make([]reader, len(all))
	for i := range readers {
		readers[i].at = time.Now()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		over := false
		select {
		case <-ctx.Done(): // the readers of a run that was cut were told just now
			over = true
		case <-tick.C:
		}
		done = true
		for i, s := range all {
			r, n := &readers[i], s.next.Load()
			if n != r.seen || over && n != perStream {
				longest = max(longest, time.Since(r.at))
				*r = reader{n, time.Now()}
			}
			done = done && (over || n == perStream)
		}
	}
	return longest
}
