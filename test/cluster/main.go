// Command cluster runs three NATS servers and three nodes of Spool on the loopback, ends them in every way
// while answers come, and counts what was lost.
//
//	cluster                    each way once, told as it happens
//	cluster matrix --times 5   each way so often, as a table
//	cluster bench              what it carries, beside what it should
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	what := "demo"
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	switch what {
	case "nats":
		return natsServer(args)
	case "demo":
		return matrix(ctx, []string{"--times", "1", "--streams", "12"})
	case "matrix":
		return matrix(ctx, args)
	case "bench":
		return bench(ctx, args)
	}
	return fmt.Errorf("%q is none of demo, matrix, bench", what)
}

// matrix ends servers and nodes, in each way so many times, and fails where anything was lost.
func matrix(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	times := flags.Int("times", 5, "how often each way is tried")
	streams := flags.Int("streams", 30, "live streams each time")
	seed := flags.Uint64("seed", rand.Uint64(), "of what is chosen by lot")
	only := flags.String("only", "", "one `way` alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Printf("seed %d\n", *seed)
	dir, err := os.MkdirTemp("", "spool-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := newFleet(ctx, dir, fakellm.Config{})
	defer f.close()
	if err != nil {
		return err
	}
	m := &play{fleet: f, rnd: rand.New(rand.NewPCG(*seed, 0)), streams: *streams}
	fmt.Println(row("what is done", "tries", "streams", "completed", "interrupted", "acknowledged", "lost", "twice or out of order", "longest silence"))
	bad := 0
	for _, w := range ways {
		if *only != "" && *only != w.name {
			continue
		}
		sum := tally{}
		var silence time.Duration
		for range *times {
			t, quiet, err := m.try(ctx, w)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			sum = sum.plus(t)
			silence = max(silence, quiet)
		}
		fmt.Println(row(w.name, *times, *times**streams, sum.completed, sum.interrupted, sum.acknowledged, sum.lost, sum.wrong, silence.Round(10*time.Millisecond)))
		if sum.lost > 0 || sum.wrong > 0 || sum.interrupted > 0 && !w.interrupts {
			bad++
		}
	}
	if err := f.check(ctx); err != nil {
		return err
	}
	fmt.Println("spool check: every stored invariant holds")
	if bad > 0 {
		return fmt.Errorf("%d ways of ending lose something", bad)
	}
	return nil
}

func (t tally) plus(o tally) tally {
	return tally{t.acknowledged + o.acknowledged, t.lost + o.lost, t.wrong + o.wrong, t.completed + o.completed, t.interrupted + o.interrupted}
}

// widths are those of a table's columns.
var widths = [...]int{30, 5, 7, 9, 11, 12, 5, 21, 15}

func row(cells ...any) (line string) {
	for i, c := range cells {
		if i == 0 {
			line = fmt.Sprintf("%-*v", widths[i], c)
			continue
		}
		line += fmt.Sprintf("  %*v", widths[i], c)
	}
	return line
}
