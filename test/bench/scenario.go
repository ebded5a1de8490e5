package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The traffic of all scenarios.
const (
	eventSize   = 100 // bytes, with the blank line
	paceRate    = 50  // events a second and stream where it is paced
	flatRun     = 20_000
	pacedRun    = paceRate * 600 // longer than any measurement
	firstRun    = 5
	longRun     = 100_000 // that is caught up with
	costRate    = 10_000  // events a second, whatever the number of runs that they come from
	maxIdle     = 20_000
	tailerMany  = 1000
	releaseMany = 1_000_000 // chunks of a generation
	releaseRun  = 4000
)

// kind is what a scenario is about, and so which numbers of it are worth reading.
type kind string

const (
	flat    kind = "flat"    // as fast as it goes
	paced   kind = "paced"   // as providers send: below saturation it shows delay and cost
	costs   kind = "costs"   // the same traffic from few runs or from many
	first   kind = "first"   // short runs one after the other: the time to the first event
	idle    kind = "idle"    // open streams in silence, each with a run of its own
	tailer  kind = "tailer"  // readers in silence, all of one run
	wake    kind = "wake"    // cursors on the engine itself, all of one run that goes on
	catchup kind = "catchup" // reading of a run that has ended, from any position, out of the file
	logged  kind = "logged"  // what a known number of events does to the disk
	retain  kind = "retain"  // the release of many chunks beside a writer, on the engine itself
	startup kind = "startup" // from the start of the process to its being ready
)

// scenario is one shape of traffic.
type scenario struct {
	name    string
	kind    kind
	streams int // concurrent clients
	events  int // of one run; a client whose run has ended starts another
	rate    int // events a second, 0: as fast as they are taken
	hold    bool
	against target // what it is compared with; empty: nothing
	of      target // the program that it is about
}

func scenarios() []scenario {
	list := []scenario{
		{name: "flat100", kind: flat, streams: 100, events: flatRun},
		{name: "flat1000", kind: flat, streams: 1000, events: flatRun},
		{name: "paced100", kind: paced, streams: 100, events: pacedRun, rate: paceRate},
		{name: "paced1000", kind: paced, streams: 1000, events: pacedRun, rate: paceRate},
		{name: "ttfb1", kind: first, streams: 1, events: firstRun},
		{name: "ttfb", kind: first, streams: 4, events: firstRun}, // each call waits for the commits of the others
		{name: "idle", kind: idle, events: 1, hold: true},
	}
	for _, runs := range []int{10, 100, 1000, 10_000} {
		list = append(list, scenario{name: fmt.Sprint("runs", runs), kind: costs, streams: runs, events: pacedRun, rate: costRate / runs})
	}
	for i := range list {
		list[i].against, list[i].of = targetProxy, targetSpool
	}
	list = append(list,
		scenario{name: "tailers", kind: tailer, streams: tailerMany, events: 1, hold: true, of: targetSpool},
		scenario{name: "wake", kind: wake, streams: tailerMany, rate: paceRate, of: targetSpool},
		scenario{name: "catchup", kind: catchup, streams: 1, events: longRun, of: targetSpool},
		scenario{name: "logflat", kind: logged, streams: 100, events: 3000, of: targetSpool},
		scenario{name: "logpaced", kind: logged, streams: 100, events: paceRate * 3, rate: paceRate, of: targetSpool},
		scenario{name: "retention", kind: retain, streams: releaseMany / releaseRun, events: releaseRun, of: targetSpool},
	)
	kept := []scenario{
		{name: "keptstart", kind: startup},
		{name: "keptflat100", kind: flat, streams: 100, events: flatRun},
		{name: "keptpaced100", kind: paced, streams: 100, events: pacedRun, rate: paceRate},
		{name: "keptttfb", kind: first, streams: 4, events: firstRun},
	}
	for _, s := range kept {
		s.against, s.of = targetSpool, targetKept
		list = append(list, s)
	}
	return list
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// chooseScenarios returns the named ones in the order of their list. The idle one holds n streams.
func chooseScenarios(names string, n int) ([]scenario, error) {
	if n < 1 || n > maxIdle {
		return nil, fmt.Errorf("--idle: 1 to %d", maxIdle)
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
		if s.kind == idle {
			s.streams = n
		}
		chosen = append(chosen, s)
	}
	for name := range wanted {
		return nil, fmt.Errorf("--only: no %q; there are %s", name, strings.Join(scenarioNames(), ", "))
	}
	return chosen, nil
}

// capped has no scenario with more streams than most.
func capped(list []scenario, most int) []scenario {
	for i := range list {
		list[i].streams = min(list[i].streams, most)
	}
	return list
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

// targets are the programs that the scenario is measured with. nginx stands beside the other proxy.
func (s scenario) targets(nginx bool) (all []target) {
	if s.against != "" {
		all = append(all, s.against)
	}
	if nginx && s.against == targetProxy {
		all = append(all, targetNginx)
	}
	return append(all, s.of)
}
