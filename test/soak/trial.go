package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

const (
	lookEach = 50 * time.Millisecond // between two looks at a run that has not ended
	stuck    = 40 * time.Second      // after which it is taken for one that never will
)

// trial is one call, its caller and its readers.
type trial struct {
	*script
	l     *load
	peer  *peer
	route string // what the provider knows it by
	key   string

	id     string
	native answer // what its caller got
	run    wire.Run

	mu       sync.Mutex
	readings []reading
}

// answer is what a caller got of its call.
type answer struct {
	status int
	head   http.Header
	bytes  []byte
	clean  bool
	left   bool
	err    error
}

// stage makes the call, has it read, waits until it has ended, and holds all of it against the script.
func (t *trial) stage(ctx context.Context, rng *rand.Rand) {
	before := t.l.fake().Count(t.route)
	t.l.fake().Script(t.route, t.answers...)
	var all sync.WaitGroup
	seeds := [...]*rand.Rand{spring(rng), spring(rng), spring(rng)} // of goroutines of their own
	begun := make(chan string, 1)
	early := rng.IntN(8) == 0 && t.state == "completed"
	if early {
		all.Go(func() { t.byKey(ctx, seeds[0]) })
	}
	all.Go(func() { t.call(ctx, seeds[1], begun) })
	if t.stop == "silence" {
		all.Go(func() { t.cancelSilent(ctx, seeds[2]) })
	}
	if id := <-begun; id != "" && t.stop != "leave" {
		t.readAlong(ctx, rng, &all, id)
	}
	all.Wait()
	if ctx.Err() != nil {
		return
	}
	if t.id == "" {
		t.wrong("its caller got no run: status %d, %v", t.native.status, t.native.err)
		return
	}
	if !t.ends(ctx, rng) {
		return
	}
	t.verify(t.l.fake().Count(t.route) - before)
	t.afterwards(ctx, rng)
}

func spring(rng *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) }

func (t *trial) wrong(format string, args ...any) {
	t.l.wrong("run %s (%s, %s): %s", t.id, t.ending, t.path, fmt.Sprintf(format, args...))
}

// call is the caller. It tells the run's id as soon as it knows it, or nothing.
func (t *trial) call(ctx context.Context, rng *rand.Rand, begun chan<- string) {
	defer close(begun)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	a := &t.native
	resp, err := t.peer.ask(ctx, rng, http.MethodPost, t.path, t.body, t.headers...)
	if a.err = err; err != nil {
		return
	}
	defer resp.Body.Close()
	a.status, a.head = resp.StatusCode, resp.Header
	t.id = resp.Header.Get(wire.HeaderRunID)
	begun <- t.id
	body := io.Reader(resp.Body)
	if t.stop == "leave" || t.stop == "" && rng.IntN(4) == 0 {
		a.left = true
		body = io.LimitReader(body, int64(1+rng.IntN(max(len(t.text.bytes), 1))))
	}
	if t.stop == "leave" { // it leaves a run that has not ended
		body = io.LimitReader(body, 1)
	}
	a.bytes, err = io.ReadAll(body)
	a.clean = err == nil
}

// readAlong adds readers to a run that has begun, and whoever stops it.
func (t *trial) readAlong(ctx context.Context, rng *rand.Rand, all *sync.WaitGroup, id string) {
	for range rng.IntN(4) {
		own, h := spring(rng), habits(rng, len(t.text.bytes))
		all.Go(func() {
			if pause(ctx, upTo(own, 300*time.Millisecond)) == nil {
				t.saw(t.peer.follow(ctx, own, id, t.text, t.stored(ctx, own, id), h))
			}
		})
	}
	if rng.IntN(6) == 0 && t.state != "failed" {
		own := spring(rng)
		all.Go(func() { t.watch(ctx, own, id) })
	}
	if t.stop == "cancel" {
		own := spring(rng)
		all.Go(func() {
			if pause(ctx, upTo(own, time.Second)) == nil {
				t.cancel(ctx, own, id)
			}
		})
	}
}

// stored is a position that is in the log already.
func (t *trial) stored(ctx context.Context, rng *rand.Rand, id string) int {
	r, err := t.get(ctx, rng, id)
	if err != nil || r.Head == 0 {
		return 0 // what is wrong with it is found later
	}
	return rng.IntN(int(r.Head) + 1)
}

func (t *trial) saw(r reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readings = append(t.readings, r)
}

// byKey reads the run by its key alone, while it is called for the first time.
func (t *trial) byKey(ctx context.Context, rng *rand.Rand) {
	for range 20 {
		resp, err := t.peer.ask(ctx, rng, http.MethodGet, "/resume?key="+t.key, "")
		if err != nil {
			return // the service is asked for its word elsewhere
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound { // it is not there yet
			if pause(ctx, lookEach) != nil {
				return
			}
			continue
		}
		if ctx.Err() == nil && (resp.StatusCode != http.StatusOK || err != nil || !bytes.Equal(got, t.text.bytes)) {
			t.wrong("a reader by key got status %d and %d bytes, %v", resp.StatusCode, len(got), err)
		}
		t.l.count(func(c *counts) { c.readers++; c.bytes += int64(len(got)) })
		return
	}
}

// watch reads the run as a page does.
func (t *trial) watch(ctx context.Context, rng *rand.Rand, id string) {
	next, last, err := t.peer.events(ctx, rng, id, 0)
	if ctx.Err() != nil {
		return
	}
	r, asked := t.get(ctx, rng, id)
	if err != nil || asked != nil || last != r.Outcome || int64(next) != r.Head+1 {
		t.wrong("/events ended with %q before %d, %v; the run is %s at %d", last, next, err, r.Outcome, r.Head)
	}
	t.l.count(func(c *counts) { c.readers++ })
}

func (t *trial) cancel(ctx context.Context, rng *rand.Rand, id string) {
	resp, err := t.peer.ask(ctx, rng, http.MethodPost, "/runs/"+id+"/cancel", "")
	if err != nil {
		t.wrong("cancel: %v", err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.wrong("cancel: %s", resp.Status)
	}
}

// cancelSilent finds the run, whose caller knows no id yet, by its key, and cancels it.
func (t *trial) cancelSilent(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		resp, err := t.peer.ask(ctx, rng, http.MethodGet, "/runs?key="+t.key, "")
		if err != nil {
			return
		}
		var page wire.RunList
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err == nil && len(page.Runs) == 1 && page.Runs[0].Phase == "waiting_for_headers" {
			t.cancel(ctx, rng, page.Runs[0].ID)
			return
		}
		_ = pause(ctx, lookEach) // ctx is looked at
	}
}

func (t *trial) get(ctx context.Context, rng *rand.Rand, id string) (r wire.Run, err error) {
	resp, err := t.peer.ask(ctx, rng, http.MethodGet, "/runs/"+id, "")
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("/runs/%s: %s", id, resp.Status)
	}
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

// ends waits until the run has ended.
func (t *trial) ends(ctx context.Context, rng *rand.Rand) bool {
	for late := time.Now().Add(stuck); time.Now().Before(late); {
		r, err := t.get(ctx, rng, t.id)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			t.wrong("%v", err)
			return false
		}
		if t.run = r; r.Ended != nil {
			return true
		}
		if pause(ctx, lookEach) != nil {
			return false
		}
	}
	t.wrong("it is stuck: %s at %d", t.run.State, t.run.Head)
	return false
}
