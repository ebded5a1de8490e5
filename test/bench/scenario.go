package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The traffic of all scenarios.
const (
	eventSize = 100 // bytes, with the blank line
	paceRate  = 50  // events a second and stream where it is paced
	flatRun   = 20_000
	pacedRun  = paceRate * 600 // longer than any measurement
	firstRun  = 5
	maxIdle   = 20_000
)

// kind is what a scenario is about, and so which numbers of it are worth reading.
type kind string

const (
	flat   kind = "flat"   // as fast as it goes
	paced  kind = "paced"  // as providers send: below saturation it shows delay and cost
	first  kind = "first"  // short runs one after the other: the time to the first event
	idle   kind = "idle"   // open streams in silence, each with a run of its own
	tailer kind = "tailer" // readers in silence, all of one run
)

// scenario is one shape of traffic.
type scenario struct {
	name    string
	kind    kind
	streams int // concurrent clients
	events  int // of one run; a client whose run has ended starts another
	rate    int // events a second, 0: as fast as they are taken
	hold    bool
}

func scenarios() []scenario {
	return []scenario{
		{name: "flat100", kind: flat, streams: 100, events: flatRun},
		{name: "flat1000", kind: flat, streams: 1000, events: flatRun},
		{name: "paced100", kind: paced, streams: 100, events: pacedRun, rate: paceRate},
		{name: "paced1000", kind: paced, streams: 1000, events: pacedRun, rate: paceRate},
		{name: "ttfb", kind: first, streams: 4, events: firstRun},
		{name: "idle", kind: idle, events: 1, hold: true},
		{name: "tailers", kind: tailer, events: 1, hold: true},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// chooseScenarios returns the named ones in the order of their list. Those that hold streams hold n.
func chooseScenarios(names string, n int) ([]scenario, error) {
	if n < 1 || n > maxIdle {
		return nil, fmt.Errorf("--tailers: 1 to %d", maxIdle)
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(names, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []scenario
	for _, s := range scenarios() {
		if !wanted[s.name] {
			continue
		}
		delete(wanted, s.name)
		if s.hold {
			s.streams = n
		}
		chosen = append(chosen, s)
	}
	for name := range wanted {
		return nil, fmt.Errorf("--scenarios: no %q; there are %s", name, strings.Join(scenarioNames(), ", "))
	}
	return chosen, nil
}

// query is the shape as the scripted provider reads it.
func (s scenario) query() string {
	q := url.Values{
		"events": {strconv.Itoa(s.events)},
		"rate":   {strconv.Itoa(s.rate)},
		"size":   {strconv.Itoa(eventSize)},
	}
	if s.hold {
		q.Set("hold", "1")
	}
	return q.Encode()
}

// targets are the programs that the scenario is measured with. A proxy has no tailers.
func (s scenario) targets() []target {
	if s.kind == tailer {
		return []target{targetSpool}
	}
	return []target{targetProxy, targetSpool}
}

// target is a program under test.
type target string

const (
	targetProxy target = "proxy"
	targetSpool target = "spool"
)
