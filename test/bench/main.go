// Command bench measures what durability costs: Spool against net/http/httputil.ReverseProxy, between
// the same provider and the same clients, on the machine that it runs on. Linux only.
//
//	go run ./test/bench                     five rounds of all rows: half an hour, more on a busy machine
//	go run ./test/bench --quick             two short rounds
//	go run ./test/bench --only ttfb,idle    some of the rows
//	go run ./test/bench --kept-runs 1000000 on a folder that is full: 13 GB, made in five minutes
//	go run ./test/bench --json out.json     the same numbers, and every raw one, for machines
//	go run ./test/bench --profile DIR       with a CPU profile of Spool for each row
//	go run ./test/bench peers               what a user would pick instead, flags alike
//
//	load ──▶ proxy or spool ──▶ provider     three processes, new ones for every measurement
//
// In every round each scenario is measured with both programs, one right after the other, and they are
// compared within the round: another process that takes the machine for a while disturbs both. It
// asserts nothing; the numbers are for people.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What --quick makes of the defaults.
const (
	rounds, quickRounds   = 5, 2
	measure, quickMeasure = 2 * time.Second, 1200 * time.Millisecond
	maxRounds             = 100
	maxMeasure            = time.Minute
	keptRuns              = 2000 // a folder that is quickly made; the goal is a million
	maxKept               = 10_000_000
	idleStreams           = 10_000
)

type options struct {
	rounds    int
	measure   time.Duration
	scenarios []scenario
	sync      string
	spool     string // the binary; "" builds one
	data      string
	json      string
	keptRuns  int
	profile   string // folder; "" keeps none
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if status, ok := errors.AsType[exitStatus](err); ok {
		stop()
		os.Exit(int(status))
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run is the bench, or one of the processes that it starts itself as.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "provider":
			return provider(ctx)
		case "proxy":
			return proxy(ctx, args[1:])
		case "load":
			return load(ctx, args[1:])
		case "keep":
			return keep(ctx, args[1:])
		case "peers":
			return peers(ctx, args[1:])
		}
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	return enclosed(ctx, o, args, bench)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("`rounds` to take the spread from (default %d, quick %d)", rounds, quickRounds))
	flags.DurationVar(&o.measure, "measure", 0, fmt.Sprintf("`time` that one measurement counts (default %s, quick %s)", measure, quickMeasure))
	only := flags.String("only", strings.Join(scenarioNames(), ","), "`rows` to measure, comma-separated")
	streams := flags.Int("idle", idleStreams, "`streams` of the idle row")
	flags.IntVar(&o.keptRuns, "kept-runs", keptRuns, fmt.Sprintf("`runs` of %d events in the folder of the kept rows; 1000000 take five minutes and 13 GB", keptEvents))
	flags.StringVar(&o.profile, "profile", "", "`folder` for CPU profiles of Spool, one for each row")
	quick := flags.Bool("quick", false, "fewer rounds, shorter ones")
	flags.StringVar(&o.sync, "sync", "full", "Spool's --sync: full or normal")
	flags.StringVar(&o.spool, "spool", "", "`binary` to measure (default: built from this module)")
	flags.StringVar(&o.data, "data", os.TempDir(), "`folder` for Spool's data, on the disk to be measured")
	flags.StringVar(&o.json, "json", "", "`file` for the numbers as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds == 0 {
		o.rounds = pick(*quick, quickRounds, rounds)
	}
	if o.measure == 0 {
		o.measure = pick(*quick, quickMeasure, measure)
	}
	switch {
	case o.rounds < 1 || o.rounds > maxRounds:
		return o, fmt.Errorf("--rounds: 1 to %d", maxRounds)
	case o.measure < 100*time.Millisecond || o.measure > maxMeasure:
		return o, fmt.Errorf("--measure: 100ms to %s", maxMeasure)
	case o.keptRuns < 1 || o.keptRuns > maxKept:
		return o, fmt.Errorf("--kept-runs: 1 to %d", maxKept)
	case o.sync != "full" && o.sync != "normal":
		return o, fmt.Errorf("--sync: %q is neither full nor normal", o.sync)
	}
	var err error
	o.scenarios, err = chooseScenarios(*only, *streams)
	return o, err
}

func pick[T any](quick bool, a, b T) T {
	if quick {
		return a
	}
	return b
}

// bench measures, reports, and leaves nothing behind.
func bench(ctx context.Context, o options) error {
	r, drop, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer drop()
	nginx := hasNginx()
	r.targets = func(s scenario) []target { return s.targets(nginx) }
	if err := r.measureAll(ctx); err != nil {
		return err
	}
	rep := r.report()
	if err := rep.print(os.Stdout); err != nil || o.json == "" {
		return err
	}
	return writeJSON(o.json, rep)
}

// prepare builds Spool, where none is given, and makes the folders.
func prepare(ctx context.Context, o options) (r *runner, drop func(), err error) {
	most, err := raiseFileLimit()
	if err != nil {
		return nil, nil, fmt.Errorf("open files: %w", err)
	}
	o.scenarios = capped(o.scenarios, most)
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return nil, nil, err
		}
	}
	dir, err := os.MkdirTemp(o.data, "spool-bench-")
	if err != nil {
		return nil, nil, err
	}
	drop = func() { _ = os.RemoveAll(dir) } // what it leaves is in a folder for such things
	if o.spool != "" {
		return &runner{options: o, self: self, dir: dir, opening: driveLimit}, drop, nil
	}
	o.spool = filepath.Join(dir, "spool")
	if err := buildSpool(ctx, o.spool); err != nil {
		drop()
		return nil, nil, err
	}
	return &runner{options: o, self: self, dir: dir, opening: driveLimit}, drop, nil
}

func buildSpool(ctx context.Context, file string) error {
	fmt.Fprintln(os.Stderr, "building Spool …")
	build := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/spool-dev/spool/cmd/spool")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}
