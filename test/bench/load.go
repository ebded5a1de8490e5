package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// The times of a measurement besides the one that counts.
const (
	driveLimit = 4 * time.Second        // for all clients to be served once, after the last one's start; flat out, some wait longer
	peerLimit  = 30 * time.Second       // the same, where a stream takes long to make
	holdLimit  = 2 * time.Minute        // the same, where all of them must be
	warmUp     = 500 * time.Millisecond // after that
	fillUp     = 2 * time.Second        // the same, flat out, until what is held on the way is held
	fillEach   = 6 * time.Millisecond   // … and for each stream
	settle     = time.Second            // until memory is read
	loadLimit  = 4 * time.Minute        // for a whole load process
)

// job is what the bench asks of a load process.
type job struct {
	Kind     kind          `json:"kind"`
	Base     string        `json:"base"` // of the program under test
	Path     string        `json:"path"` // of a generation call, with its query
	Streams  int           `json:"streams"`
	Events   int64         `json:"events"`
	Rate     int           `json:"rate"`
	Opening  time.Duration `json:"opening"` // how long is waited for all clients to be served once
	Measure  time.Duration `json:"measure"`
	Targets  []int         `json:"targets"`  // processes under test
	Provider int           `json:"provider"` // the other one
	Data     string        `json:"data"`     // where the program stores
	Run      string        `json:"run"`      // to be caught up with
	Metrics  string        `json:"metrics"`  // where the program tells of itself; empty: nowhere
	Profile  string        `json:"profile"`  // file for its CPU profile; empty: none
	Pprof    string        `json:"pprof"`    // where that comes from
}

// outcome is what one load process has measured. CPU times are seconds.
type outcome struct {
	Seconds       float64 `json:"seconds"`
	Events        int64   `json:"events"` // within those
	LatencyP50    float64 `json:"latency_p50_us"`
	LatencyP99    float64 `json:"latency_p99_us"`
	LatencyP999   float64 `json:"latency_p999_us"`
	FirstP50      float64 `json:"first_p50_us"`
	FirstP99      float64 `json:"first_p99_us"`
	TargetCPU     float64 `json:"target_cpu"`
	ProviderCPU   float64 `json:"provider_cpu"`
	ClientCPU     float64 `json:"client_cpu"`
	Others        float64 `json:"others"`            // share of the machine that unrelated processes took
	Resident      float64 `json:"resident"`          // bytes for each stream that is held
	Memory        float64 `json:"memory"`            // resident bytes of all processes under test, after the measurement
	Allocations   float64 `json:"allocations"`       // of the program under test, where it tells
	Bytes         int64   `json:"bytes"`             // of events that were caught up with, or logged
	WAL           int64   `json:"wal"`               // bytes written to the write-ahead log
	Written       int64   `json:"written"`           // bytes written to the disk in all
	Kept          int64   `json:"kept"`              // bytes of the data folder after a clean stop
	Reads         float64 `json:"reads"`             // read system calls for each event, whatever the number of tailers
	ReleasingP999 float64 `json:"releasing_p999_us"` // of commits beside a release
	Grown         float64 `json:"grown"`             // the log's file after the last generation, to what it was after the first
	Start         float64 `json:"start"`             // seconds
	Run           string  `json:"run,omitempty"`
	Checks        tally   `json:"checks"`
}

// load does the job that its argument describes and prints the outcome.
func load(ctx context.Context, args []string) error {
	var j job
	if len(args) != 1 {
		return fmt.Errorf("load: want one job, have %q", args)
	}
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	o, err := j.do(ctx)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(o)
}

func (j job) do(ctx context.Context) (outcome, error) {
	switch j.Kind {
	case idle, tailer:
		return j.hold(ctx)
	case wake:
		return j.wake(ctx)
	case retain:
		return j.retain(ctx)
	case catchup:
		return j.catchUp(ctx)
	case logged:
		return j.log(ctx)
	}
	return j.drive(ctx)
}

// drive lets all clients call until the window in the middle has been measured. Clients that are not
// served in time do not put it off: the checks tell of them.
func (j job) drive(ctx context.Context) (o outcome, err error) {
	asking, err := askingCost(j.Metrics)
	if err != nil {
		return o, err
	}
	var measuring atomic.Bool
	f := repeated(ctx, j.clients(&measuring))
	defer f.land()
	if err := f.opened(ctx, j.Opening+time.Duration(j.Streams)*rampEach); err != nil && !errors.Is(err, errLate) {
		return o, err
	}
	if err := pause(ctx, j.warmUp()); err != nil {
		return o, err
	}
	if err := j.window(ctx, &measuring, &o); err != nil {
		return o, err
	}
	f.land()
	o.sum(f.clients)
	o.Allocations = max(0, o.Allocations-asking)
	return o, nil
}

// warmUp is how long the clients run before the window begins.
func (j job) warmUp() time.Duration {
	if j.Kind == flat {
		return fillUp + time.Duration(j.Streams)*fillEach
	}
	return warmUp
}

// window counts for as long as a measurement takes.
func (j job) window(ctx context.Context, measuring *atomic.Bool, o *outcome) error {
	profiled := j.beginProfile(ctx)
	before, err := takeSample(j.Targets, j.Provider, j.Metrics)
	if err != nil {
		return err
	}
	began := time.Now()
	measuring.Store(true)
	err = pause(ctx, j.Measure)
	measuring.Store(false)
	o.Seconds = time.Since(began).Seconds()
	if err != nil {
		return err
	}
	after, err := takeSample(j.Targets, j.Provider, j.Metrics)
	if err != nil {
		return err
	}
	used := after.since(before)
	o.TargetCPU, o.ProviderCPU, o.ClientCPU = used.target, used.provider, used.client
	o.Others = used.others() / o.Seconds / float64(runtime.NumCPU())
	o.Allocations = used.allocations
	memory, err := residentAll(j.Targets)
	o.Memory = float64(memory)
	return errors.Join(err, <-profiled)
}

// sum adds up what the clients saw.
func (o *outcome) sum(cs []*client) {
	var latency, first histogram
	for _, c := range cs {
		o.Events += c.counted
		o.Checks.add(c.tally)
		latency.merge(&c.latency)
		first.merge(&c.first)
	}
	o.LatencyP50, o.LatencyP99 = latency.quantile(0.5), latency.quantile(0.99)
	o.FirstP50, o.FirstP99 = first.quantile(0.5), first.quantile(0.99)
}

// clients are the callers of generation calls.
func (j job) clients(measuring *atomic.Bool) []*client {
	pool := &http.Client{Transport: &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: j.Streams, ReadBufferSize: readSize / 2,
	}}
	cs := make([]*client, j.Streams)
	for i := range cs {
		cs[i] = &client{http: pool, method: http.MethodPost, url: j.Base + j.Path, events: j.Events, calls: maxRuns, measuring: measuring}
	}
	return cs
}
