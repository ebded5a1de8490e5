package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

const (
	workers = 24  // calls at once
	slots   = 4   // of a provider: fewer than that, so that calls wait for each other
	kept    = 100 // ended runs that are read again later
	told    = 30  // broken promises that are told; the others are counted
)

// counts is what was done.
type counts struct {
	runs, readers, hops, repeats, acks, bought int
	bytes                                      int64 // that readers got and that were compared
	endings, habits                            map[string]int
}

// past is a run that has ended.
type past struct {
	*trial
	at time.Time
}

// load is what the workers share.
type load struct {
	o    options
	out  io.Writer
	peer *peer
	thrifty
	n        atomic.Int64 // calls so far
	provider atomic.Pointer[fakellm.Server]

	mu     sync.Mutex
	counts counts
	broken []string
	faults int
	past   []past
}

func (l *load) fake() *fakellm.Server { return l.provider.Load() }

func (l *load) count(f func(*counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.counts)
}

// wrong notes a broken promise.
func (l *load) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faults++; l.faults <= told {
		l.broken = append(l.broken, fmt.Sprintf(format, args...))
		fmt.Fprintln(l.out, time.Now().Format(time.TimeOnly), "BROKEN:", l.broken[len(l.broken)-1])
	}
}

// keep has a run read again later.
func (l *load) keep(p past) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.past = append(l.past, p); len(l.past) > kept {
		l.past = slices.Delete(l.past, 0, 1)
	}
}

// old draws one of the runs that have ended.
func (l *load) old(rng *rand.Rand) (past, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.past) == 0 {
		return past{}, false
	}
	return l.past[rng.IntN(len(l.past))], true
}

// drive has the workers work until ctx ends; each brings its last run to an end.
func (l *load) drive(ctx, all context.Context, phase string, seed uint64) {
	var working sync.WaitGroup
	for w := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		working.Go(func() {
			for l.wait(ctx) == nil {
				l.turn(all, rng, fmt.Sprintf("w%d", w), phase)
			}
		})
	}
	working.Wait()
}

// turn is a call and all that belongs to it, or a reader of a run of before.
func (l *load) turn(ctx context.Context, rng *rand.Rand, route, phase string) {
	if p, ok := l.old(rng); ok && rng.IntN(3) == 0 {
		if p.ending != "down" {
			p.late(ctx, rng, rng.IntN(int(p.run.Head)+1))
		}
		return
	}
	n := int(l.n.Add(1))
	key := fmt.Sprintf("%s-%d", phase, n)
	t := &trial{script: invent(rng, route, key, n), l: l, peer: l.peer, route: route, key: key}
	t.stage(ctx, rng)
}
