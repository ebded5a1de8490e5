// Package faults breaks the log in every way that a disk, a power cut or an operator knows, and prints a table
// of what was promised and what was seen. `make faults` runs it.
package faults

import (
	"fmt"
	"os"
	"testing"
	"text/tabwriter"
)

// fault is one row.
type fault struct {
	name     string
	promised string
	stage    func(t *testing.T, c *count)
}

// count is what came of a row.
type count struct {
	times     int // how often the fault was there
	lost      int // events that a client may count on, and that are gone
	corrupted int // runs that hold what they should not
}

func TestFaults(t *testing.T) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nfault\ttimes\tpromised\tseen\tlost events\tcorrupted runs")
	for _, f := range append(liveFaults(), powerFaults()...) {
		var c count
		ok := t.Run(f.name, func(t *testing.T) {
			f.stage(t, &c)
			if c.times == 0 || c.lost > 0 || c.corrupted > 0 {
				t.Errorf("%d times, %d events lost, %d runs corrupted", c.times, c.lost, c.corrupted)
			}
		})
		seen := "that"
		if !ok {
			seen = "SOMETHING ELSE"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%d\n", f.name, c.times, f.promised, seen, c.lost, c.corrupted)
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
}
