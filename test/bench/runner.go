package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// runner makes the measurements and keeps what they gave.
type runner struct {
	options
	self    string // this program
	dir     string // on the disk to be measured
	kept    string // the folder that holds many runs; made when it is needed first
	targets func(scenario) []target
	opening time.Duration // how long clients may wait for their first event
	out     []measured
	failed  []string // what did not come about
	disk    histogram
}

// measured is one measurement of one program.
type measured struct {
	Scenario string `json:"scenario"`
	Target   target `json:"target"`
	Round    int    `json:"round"` // from 1
	outcome
}

// measureAll makes all rounds. Every other one takes the programs in the opposite order: neither
// always comes after the other.
func (r *runner) measureAll(ctx context.Context) error {
	for round := 1; round <= r.rounds; round++ {
		if err := timeFlushes(r.dir, &r.disk); err != nil {
			return fmt.Errorf("time flushes: %w", err)
		}
		for _, s := range r.scenarios {
			got, err := r.measureEach(ctx, s, round)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil { // on a busy machine a row may not come about; the others still do
				r.failed = append(r.failed, fmt.Sprintf("round %d: %s: %v", round, s.name, err))
				fmt.Fprintln(os.Stderr, r.failed[len(r.failed)-1])
				continue
			}
			r.out = append(r.out, got...)
		}
	}
	return nil
}

// measureEach measures one scenario with all its programs, or fails: what one program gave alone could
// be compared with nothing.
func (r *runner) measureEach(ctx context.Context, s scenario, round int) (got []measured, err error) {
	targets := r.targets(s)
	if round%2 == 0 {
		slices.Reverse(targets)
	}
	for _, t := range targets {
		began := time.Now()
		o, err := r.measureOne(ctx, s, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s, %s: %.1f s\n", round, r.rounds, s.name, t, time.Since(began).Seconds())
		got = append(got, measured{s.name, t, round, o})
	}
	return got, nil
}

// measureOne starts the processes of one measurement, and ends them.
func (r *runner) measureOne(ctx context.Context, s scenario, t target) (o outcome, err error) {
	data, drop, err := r.folder(ctx, t)
	if err != nil {
		return o, err
	}
	defer drop()
	j := job{Kind: s.kind, Streams: s.streams, Events: int64(s.events), Rate: s.rate, Opening: r.opening, Measure: r.measure, Data: data}
	if s.kind == wake || s.kind == retain {
		return r.load(ctx, j)
	}
	upstream, err := start(ctx, r.self, "provider")
	if err != nil {
		return o, err
	}
	defer upstream.stop() // where the program did not start
	began := time.Now()
	program, err := r.launch(ctx, t, "http://"+upstream.addr+"/load", data)
	if err != nil {
		return o, err
	}
	defer program.stop()
	defer upstream.stop() // first: it ends the runs that would else be waited for
	j.Base, j.Path, j.Provider = program.base, program.path+"?"+s.query(), upstream.pid()
	switch s.kind {
	case startup:
		return outcome{Start: time.Since(began).Seconds()}, nil
	case catchup:
		if j.Run, err = r.fill(ctx, j, program); err != nil {
			return o, err
		}
	}
	j.Targets = program.pids()
	if t == targetSpool || t == targetKept {
		j.Metrics = program.inside() + "/metrics"
		j.Profile, j.Pprof = r.profileOf(s, t, program)
	}
	if o, err = r.load(ctx, j); err != nil {
		return o, err
	}
	if err := program.ended(); err != nil || s.kind != logged {
		return o, err
	}
	upstream.stop()
	program.stop() // what is left then is what is kept
	o.Kept, err = folderSize(data)
	return o, err
}

// folder is where a program may store, and what ends it.
func (r *runner) folder(ctx context.Context, t target) (dir string, drop func(), err error) {
	if t != targetKept {
		dir, err = os.MkdirTemp(r.dir, "data-")
		return dir, func() { _ = os.RemoveAll(dir) }, err // the whole bench's folder goes at the end
	}
	if r.kept == "" {
		if r.kept, err = r.keep(ctx); err != nil {
			return "", nil, fmt.Errorf("keep %d runs: %w", r.keptRuns, err)
		}
	}
	return r.kept, func() {}, nil
}

// fill stores one run, and starts the program anew: nothing of it is in memory any more. It returns
// the run's id.
func (r *runner) fill(ctx context.Context, j job, program *service) (string, error) {
	j.Kind, j.Targets = logged, program.pids()
	o, err := r.load(ctx, j)
	if err != nil {
		return "", err
	}
	if o.Checks.Broken > 0 || o.Run == "" {
		return "", fmt.Errorf("the run was not stored: %+v", o.Checks)
	}
	program.parts[0].stop()
	return o.Run, program.restart(0)
}

// load has a process of its own do the job.
func (r *runner) load(ctx context.Context, j job) (o outcome, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.self, "load", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(out, &o)
}
