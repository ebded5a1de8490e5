package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// courseRows is how many parts of the time under load the report shows.
const courseRows = 12

// stop ends the service as it is meant to be ended, and looks at what it leaves behind.
func (s *site) stop(ctx context.Context) error {
	if err := s.process.Term(); err != nil {
		return err
	}
	if code, err := s.process.Code(); err != nil || code != 0 || len(s.process.Strays) > 0 {
		s.wrong("it ended with %d, %v, and printed %q", code, err, s.process.Strays)
	}
	if err := s.service.Check(ctx); err != nil {
		s.wrong("%v", err)
	}
	if out, err := exec.CommandContext(ctx, s.service.Path, "compact", s.service.Dir).CombinedOutput(); err != nil {
		return fmt.Errorf("compact: %w: %s", err, out)
	}
	info, err := os.Stat(filepath.Join(s.service.Dir, "spool.db"))
	if err != nil {
		return err
	}
	s.compacted = info.Size()
	return nil
}

func (s *site) report() {
	c := s.counts
	fmt.Fprintf(s.out, "\nseed %d: %d runs, %d requests to the provider, %d readers who came %d times, %s compared, %d repeats that bought nothing, %d released by hand\n",
		s.o.seed, c.runs, c.bought, c.readers, c.readers+c.hops, size(float64(c.bytes)), c.repeats, c.acks)
	fmt.Fprintf(s.out, "endings: %s\nreaders: %s\n\n", tally(c.endings), tally(c.habits))
	s.reportCourse()
	s.reportEnd()
	fmt.Fprintf(s.out, "processor: %.2f cores on average until the load's end, of the service, its readers and its provider\n", s.busy)
	fmt.Fprintf(s.out, "compacted: %s for the tombstones of %d runs\n", size(float64(s.compacted)), c.runs)
	fmt.Fprintf(s.out, "broken promises: %d\n", s.faults)
	for _, line := range s.broken {
		fmt.Fprintln(s.out, " ", line)
	}
}

// reportCourse shows the highest figures of each part of the time under load.
func (s *site) reportCourse() {
	if len(s.course) == 0 {
		return
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "highest until\t")
	for _, g := range gauges {
		fmt.Fprint(table, g.name, "\t")
	}
	fmt.Fprintln(table)
	for part := range slices.Chunk(s.course, (len(s.course)+courseRows-1)/courseRows) {
		most := part[0]
		for _, got := range part {
			most = most.most(got)
		}
		fmt.Fprint(table, part[len(part)-1].at.Sub(s.course[0].at).Round(time.Second), "\t")
		for _, g := range gauges {
			fmt.Fprint(table, g.text(*g.of(&most)), "\t")
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a report that cannot be written is nobody's
	fmt.Fprintln(s.out)
}

// reportEnd shows whether each figure has returned.
func (s *site) reportEnd() {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tstarted\tbegan\thighest\tended\tallowed\t\t")
	var most sample
	for _, got := range s.course {
		most = most.most(got)
	}
	for _, g := range gauges {
		allowed, verdict := g.text(*g.of(&s.begin)+s.o.slack.of(g, s.counts.runs-s.beginRuns)), "returned"
		if g.name == filesGauge {
			allowed = "-"
		}
		if !s.returned(g, s.end) {
			verdict = "BROKEN"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", g.name, g.text(*g.of(&s.started)), g.text(*g.of(&s.begin)), g.text(*g.of(&most)),
			g.text(*g.of(&s.end)), allowed, verdict)
	}
	_ = table.Flush() // as above
	fmt.Fprintln(s.out)
}

// text is a value of the figure.
func (g gauge) text(v float64) string {
	if g.bytes {
		return size(v)
	}
	return fmt.Sprintf("%.0f", v)
}

func size(v float64) string { return fmt.Sprintf("%.1f MiB", v/(1<<20)) }

func tally(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(all, ", ")
}
