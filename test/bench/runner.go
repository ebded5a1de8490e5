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

// grace is what Spool's live runs are given when a measurement is over.
const grace = "1s"

// runner makes the measurements and keeps what they gave.
type runner struct {
	options
	self string // this program
	dir  string // on the disk to be measured
	out  []measured
	disk histogram
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
			targets := s.targets()
			if round%2 == 0 {
				slices.Reverse(targets)
			}
			for _, t := range targets {
				began := time.Now()
				o, err := r.measureOne(ctx, s, t)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, t, err)
				}
				fmt.Fprintf(os.Stderr, "round %d of %d: %s, %s: %.1f s\n", round, r.rounds, s.name, t, time.Since(began).Seconds())
				r.out = append(r.out, measured{s.name, t, round, o})
			}
		}
	}
	return nil
}

// measureOne starts the processes of one measurement, and ends them.
func (r *runner) measureOne(ctx context.Context, s scenario, t target) (o outcome, err error) {
	data, err := os.MkdirTemp(r.dir, "data-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(data)
	upstream, err := start(ctx, r.self, "provider")
	if err != nil {
		return o, err
	}
	defer upstream.stop() // where the program did not start
	program, path, err := r.start(ctx, t, "http://"+upstream.addr+"/load", data)
	if err != nil {
		return o, err
	}
	defer program.stop()
	defer upstream.stop() // first: it ends the runs that would else be waited for
	o, err = r.load(ctx, job{
		Kind: s.kind, Base: "http://" + program.addr, Path: path + "?" + s.query(), Streams: s.streams, Events: int64(s.events),
		Measure: r.measure, Target: program.pid(), Provider: upstream.pid(),
	})
	select {
	case <-program.ended:
		return o, fmt.Errorf("%s: %s: %s", program, program.cmd.ProcessState, program.words.last)
	default:
		return o, err
	}
}

// start starts the program under test, and says under which path it takes calls.
func (r *runner) start(ctx context.Context, t target, upstream, data string) (c *child, path string, err error) {
	const call = "/v1/chat/completions"
	if t == targetProxy {
		c, err = start(ctx, r.self, "proxy", upstream)
		return c, call, err
	}
	c, err = start(ctx, r.spool, "serve", "--listen", anyPort, "--data", data, "--sync", r.sync, "--grace", grace,
		"--provider", "openai="+upstream)
	return c, "/openai" + call, err
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
