package main

import (
	"context"
	"errors"
	"time"
)

// calm waits until all that was asked for is over, kept by nobody and given back, and measures.
func (s *site) calm(ctx context.Context, settled func(sample) bool) (got sample, err error) {
	s.peer.close()
	s.bought += s.fake().Count("")
	s.fake().Close() // which ends the connections that the service keeps for later
	defer func() { err = errors.Join(err, s.openProvider(s.address)) }()
	var in stored
	for late := time.Now().Add(s.o.ttl + 3*sweepEach); ; {
		if in, err = look(ctx, s.meter.log); err != nil {
			return got, err
		}
		if in.quiet() {
			break
		}
		if time.Now().After(late) {
			s.wrong("it does not come to rest: %d chunks, runs: %v", in.chunks, in.states)
			break
		}
		if err := pause(ctx, time.Second); err != nil {
			return got, err
		}
	}
	if in.attempts != s.bought {
		s.wrong("%d requests came to the provider, and the ledger has %d", s.bought, in.attempts)
	}
	for late := time.Now().Add(settles); ; {
		if err := s.meter.collect(); err != nil {
			return got, err
		}
		if got, err = s.meter.sample(ctx); err != nil || settled(got) || time.Now().After(late) {
			return got, err
		}
		if err := pause(ctx, time.Second); err != nil {
			return got, err
		}
	}
}

// never has calm wait for as long as anything may take to settle.
func never(sample) bool { return false }

// back says whether everything is where it began.
func (s *site) back(now sample) bool {
	for _, g := range gauges {
		if !s.returned(g, now) {
			return false
		}
	}
	return true
}

// returned says whether one figure is, as far as it has to be.
func (s *site) returned(g gauge, now sample) bool {
	return g.name == filesGauge || *g.of(&now) <= *g.of(&s.begin)+s.o.slack.of(g, s.counts.runs-s.beginRuns)
}

func (s *site) compare() {
	for _, g := range gauges {
		if !s.returned(g, s.end) {
			s.wrong("%s: %.0f, it began at %.0f", g.name, *g.of(&s.end), *g.of(&s.begin))
		}
	}
}
