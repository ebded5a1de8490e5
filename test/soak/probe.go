package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

// probe takes every slot of every provider at once, which works if no run has kept one.
func (s *site) probe(ctx context.Context) error {
	const route = "probe"
	open := make(chan struct{})
	var calls sync.WaitGroup
	wanted := 0
	seen := map[string]bool{}
	for _, d := range dialects {
		if seen[d.provider] {
			continue
		}
		seen[d.provider] = true
		for i := range slots {
			rng := rand.New(rand.NewPCG(s.o.seed, uint64(wanted)))
			t := &script{}
			complete(rng, d, t)
			ops := append([]fakellm.Op{fakellm.Gate(open)}, t.answers[0]...)
			own := fmt.Sprintf("%s/%s-%d", route, d.provider, i)
			s.fake().Script(own, ops)
			calls.Go(func() { s.call(ctx, rng, "/"+d.provider+"/"+own+modelled(d.path, "m"), t.text) })
			wanted++
		}
	}
	err := within(ctx, binary.Patience, func() bool { return s.waiting() == wanted })
	if err != nil {
		s.wrong("%d of %d slots could be taken", s.waiting(), wanted)
	}
	close(open)
	calls.Wait()
	return ctx.Err()
}

// waiting is how many of the provider's answers are under way.
func (s *site) waiting() (n int) {
	for _, r := range s.fake().Requests() {
		if r.Ended.IsZero() {
			n++
		}
	}
	return n
}

// call makes a call that completes.
func (s *site) call(ctx context.Context, rng *rand.Rand, path string, want text) {
	resp, err := s.peer.ask(ctx, rng, http.MethodPost, path, `{"model":"m","stream":true,"messages":[]}`, "X-Buffer-Heartbeat", "off")
	if err != nil {
		s.wrong("probe: %v", err)
		return
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != string(want.bytes) {
		s.wrong("probe %s: %s, %d of %d bytes, %v", path, resp.Status, len(got), len(want.bytes), err)
	}
	s.count(func(c *counts) { c.runs++ })
}

// within waits until done holds, for so long at most.
func within(ctx context.Context, d time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for !done() {
		if err := pause(ctx, lookEach); err != nil {
			return err
		}
	}
	return nil
}
