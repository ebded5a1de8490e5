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
	m := r.Machine
	fmt.Fprintf(&b, "\n%s, %s, %d cores (%s); other processes took %.0f %% of them (%.0f to %.0f %%)\n",
		m.System, m.Go, m.Cores, m.CPU, 100*m.Others.Median, 100*m.Others.Min, 100*m.Others.Max)
	fmt.Fprintf(&b, "one flush of this disk (4 KiB appended): p50 %s ms, p99 %s ms\n", figure(m.FlushP50/1000), figure(m.FlushP99/1000))
	fmt.Fprintf(&b, "Spool with --sync %s; events of %d bytes; median of %d rounds (min to max); compared within each round\n\n", r.Sync, r.EventSize, r.Rounds)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tmeasure\tproxy\tspool\tspool / proxy\tspool - proxy\t")
	before := ""
	for _, l := range r.Lines {
		name := l.Scenario
		if l.Streams > 0 && !strings.Contains(name, fmt.Sprint(l.Streams)) {
			name += fmt.Sprintf(" (%d)", l.Streams)
		}
		if name == before {
			name = ""
		} else {
			before = name
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, l.Measure, median(l.Proxy), median(&l.Spool), ranged(l.Ratio), ranged(l.Added))
	}
	_ = t.Flush() // into memory: it cannot fail

	fmt.Fprintln(&b)
	checks := map[target]*tally{targetProxy: {}, targetSpool: {}}
	for _, c := range r.Checks {
		checks[c.Target].add(c.tally)
	}
	for _, name := range []target{targetProxy, targetSpool} {
		c := checks[name]
		fmt.Fprintf(&b, "%s: %d events checked; lost %d, repeated or late %d, damaged %d; broken calls %d, clients without an event %d\n",
			name, c.Events, c.Lost, c.Repeated, c.Damaged, c.Broken, c.Silent)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
