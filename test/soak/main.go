// Command soak keeps the built service busy for as long as is wanted, with runs that end in every way and
// readers that come, go, stop and come back, and then looks whether everything has returned to where it
// began. Linux only.
//
//	make soak DURATION=1h
//	go run ./test/soak --duration 10m --cpu 0.8 --seed 7
//
//	workers ──▶ spool ──▶ provider       the service is a process of its own, the rest is this one
//
//	warm up, quiet, measure ──▶ load ──▶ quiet, measure ──▶ stop, check, report
//
// It exits with 1 where a promise is broken. How fast it goes is bounded by the processor time that it and
// the service take together, so that the machine can be used meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options say how long, how hard, and what comes of chance.
type options struct {
	duration time.Duration
	warmUp   time.Duration // load before the first measurement; 0 measures the service as it has started
	ttl      time.Duration // of ended runs, so that they are released while it lasts
	cpu      float64       // cores that it and the service may take together
	seed     uint64
	every    time.Duration // between two samples
	slack    slack
	dir      string // for the binary and the data folder
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{ttl: 30 * time.Second, every: 2 * time.Second, slack: warmSlack}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", time.Minute, "`time` under load, a tenth of it to warm up besides")
	flags.Float64Var(&o.cpu, "cpu", 0.4, "`cores` that the soak and the service may take together")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "`number` that chance begins with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.duration < time.Second:
		return errors.New("--duration: a second at least")
	case o.cpu <= 0:
		return errors.New("--cpu: above 0")
	}
	o.warmUp = max(o.duration/10, 5*time.Second)
	var err error
	if o.dir, err = os.MkdirTemp("", "spool-soak-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.dir) }() // in a folder for such things
	return soak(ctx, o, os.Stdout)
}
