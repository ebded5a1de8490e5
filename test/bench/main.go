// Command bench measures what durability costs: Spool against net/http/httputil.ReverseProxy, between
// the same provider and the same clients, on the machine that it runs on. Linux only.
//
//	go run ./test/bench                  five rounds: minutes, and more of them on a busy machine
//	go run ./test/bench --quick          two short rounds
//	go run ./test/bench --json out.json  the same numbers, and every raw one, for machines
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
)

type options struct {
	rounds    int
	measure   time.Duration
	scenarios []scenario
	sync      string
	spool     string // the binary; "" builds one
	data      string
	json      string
}

func main() {
	if err := raiseFileLimit(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: open files:", err) // many streams will not fit, which the result shows
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
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
		}
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	return bench(ctx, o)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("`rounds` to take the spread from (default %d, quick %d)", rounds, quickRounds))
	flags.DurationVar(&o.measure, "measure", 0, fmt.Sprintf("`time` that one measurement counts (default %s, quick %s)", measure, quickMeasure))
	names := flags.String("scenarios", strings.Join(scenarioNames(), ","), "`names` of the scenarios, comma-separated")
	tailers := flags.Int("tailers", 2000, "streams or tailers of the scenarios that hold them idle")
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
	case o.sync != "full" && o.sync != "normal":
		return o, fmt.Errorf("--sync: %q is neither full nor normal", o.sync)
	}
	var err error
	o.scenarios, err = chooseScenarios(*names, *tailers)
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
	dir, err := os.MkdirTemp(o.data, "spool-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.spool == "" {
		fmt.Fprintln(os.Stderr, "building Spool …")
		o.spool = filepath.Join(dir, "spool")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.spool, "github.com/spool-dev/spool/cmd/spool")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &runner{options: o, self: self, dir: dir}
	if err := r.measureAll(ctx); err != nil {
		return err
	}
	rep := r.report()
	if err := rep.print(os.Stdout); err != nil {
		return err
	}
	if o.json == "" {
		return nil
	}
	return rep.write(o.json)
}
