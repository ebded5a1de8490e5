// Command cluster runs three NATS servers and three nodes of Spool on the loopback, ends and upgrades them in
// every way while answers come, and counts what was lost.
//
//	cluster                    each way once
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
	"slices"
	"strings"
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
		return matrix(ctx, append([]string{"--times", "1", "--streams", "24"}, args...))
	case "matrix":
		return matrix(ctx, args)
	case "bench":
		return bench(ctx, args)
	}
	return fmt.Errorf("%q is none of demo, matrix, bench", what)
}

// staged has do play with a fleet in a folder that is gone afterwards.
func staged(ctx context.Context, do func(*fleet) error) error {
	dir, err := os.MkdirTemp("", "spool-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := newFleet(ctx, dir, dir, fakellm.Config{})
	defer f.close()
	if err != nil {
		return err
	}
	return do(f)
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
	asked := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return *only != "" && *only != w.name })
	if len(asked) == 0 {
		return fmt.Errorf("--only %q is none of the ways", *only)
	}
	fmt.Printf("seed %d\n", *seed)
	return staged(ctx, func(f *fleet) error {
		p := &play{fleet: f, rnd: rand.New(rand.NewPCG(*seed, 0)), streams: *streams}
		return p.table(ctx, asked, *times)
	})
}

// table tries each way so many times, and prints a line for it and one for all.
func (p *play) table(ctx context.Context, asked []way, times int) error {
	fmt.Println(row("what is done", "tries", "streams", "completed", "interrupted", "callers cut", "acknowledged", "lost", "twice or out of order", "new calls", "failed", "longest silence"))
	print := func(what string, times int, t tally, silence time.Duration) {
		fmt.Println(row(what, times, times*p.streams, t.completed, t.interrupted, t.cut, t.acknowledged, t.lost, t.wrong, t.calls, t.failed, silence.Round(10*time.Millisecond)))
	}
	var whole tally
	var longest time.Duration
	var noticed []string
	for _, w := range asked {
		var sum tally
		var silence time.Duration
		for range times {
			t, quiet, err := p.try(ctx, w)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			sum, silence = sum.plus(t), max(silence, quiet)
		}
		print(w.name, times, sum, silence)
		whole, longest = whole.plus(sum), max(longest, silence)
		if sum.lost+sum.wrong > 0 || sum.failed+sum.interrupted+sum.cut > 0 && !w.interrupts {
			noticed = append(noticed, w.name)
		}
	}
	print("all of them", times*len(asked), whole, longest)
	if err := p.check(ctx); err != nil {
		return err
	}
	fmt.Println("spool check: every stored invariant holds")
	if len(noticed) > 0 {
		return fmt.Errorf("what should not be noticed was: %s", strings.Join(noticed, ", "))
	}
	return nil
}

// widths are those of a table's columns.
var widths = [...]int{28, 5, 7, 9, 11, 11, 12, 4, 21, 9, 6, 15}

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
