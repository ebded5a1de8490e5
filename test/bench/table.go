package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print writes the report for people: facts of the machine, a table, and what the clients checked.
func (r *report) print(w io.Writer) error {
	var b strings.Builder
	r.Machine.print(&b)
	fmt.Fprintf(&b, "Spool with --sync %s; events of %d bytes; median of %d rounds (min to max); compared within each round.\n", r.Sync, r.EventSize, r.Rounds)
	fmt.Fprintf(&b, "The baseline is ReverseProxy; of the kept rows it is Spool on an empty folder, against one of %d runs of %d events.\n\n", r.KeptRuns, keptEvents)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tmeasure\tbaseline\tnginx\tspool\tspool / baseline\tspool - baseline\tgoal\t")
	before := ""
	for _, l := range r.Lines {
		name := l.name()
		if name == before {
			name = ""
		} else {
			before = name
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, l.Measure, median(l.Baseline), median(l.Nginx), l.spool(), ranged(l.Ratio), ranged(l.Added), l.verdict())
	}
	_ = t.Flush() // into memory: it cannot fail

	fmt.Fprintln(&b)
	printChecks(&b, r.Checks)
	for _, f := range r.Failed {
		fmt.Fprintln(&b, "failed:", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m machine) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s, %s, %d cores (%s); other processes took %.0f %% of them (%.0f to %.0f %%)\n",
		m.System, m.Go, m.Cores, m.CPU, 100*m.Others.Median, 100*m.Others.Min, 100*m.Others.Max)
	if m.Network != ownNetwork {
		fmt.Fprintln(w, "in the machine's own network: flat out, the kernel's buffers grow for what reads slower than the provider writes")
	}
	fmt.Fprintf(w, "one flush of this disk (4 KiB appended): p50 %s ms, p99 %s ms\n", figure(m.FlushP50/1000), figure(m.FlushP99/1000))
}

// name has the number of streams where the scenario's own name does not say it.
func (l line) name() string {
	if l.Streams == 0 || strings.Contains(l.Scenario, fmt.Sprint(l.Streams)) {
		return l.Scenario
	}
	return fmt.Sprintf("%s (%d)", l.Scenario, l.Streams)
}

// spool has its spread where it is not compared.
func (l line) spool() string {
	if l.Baseline == nil {
		return ranged(&l.Spool)
	}
	return median(&l.Spool)
}

func (l line) verdict() string {
	switch {
	case l.Met == nil:
		return ""
	case *l.Met:
		return "met: " + l.Goal
	}
	return "not met: " + l.Goal
}

// text is the goal in words and figures.
func (g goal) text(r *report) string {
	bound := "at most"
	if g.least {
		bound = "at least"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", bound, figure(g.limit(r)), g.why))
}

// printChecks writes a line for each program, in the order in which they come.
func printChecks(w io.Writer, lines []checksLine) {
	sums := map[target]*tally{}
	var order []target
	for _, c := range lines {
		if sums[c.Target] == nil {
			sums[c.Target] = &tally{}
			order = append(order, c.Target)
		}
		sums[c.Target].add(c.tally)
	}
	for _, t := range order {
		c := sums[t]
		fmt.Fprintf(w, "%s: %d events checked; lost %d, repeated or late %d, damaged %d; broken calls %d, clients without an event %d\n",
			t, c.Events, c.Lost, c.Repeated, c.Damaged, c.Broken, c.Silent)
	}
}

func median(s *spread) string {
	if s == nil {
		return "-"
	}
	return figure(s.Median)
}

func ranged(s *spread) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", figure(s.Median), figure(s.Min), figure(s.Max))
}

// figure has three digits that count, and all of those before the point.
func figure(v float64) string {
	switch size := max(v, -v); {
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
