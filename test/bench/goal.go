package main

import "strings"

// slack is how much more is still called flat: two measurements of one program differ by as much.
const slack = 1.1

// goal is what a figure should be.
type goal struct {
	why   string // the limit in words; empty where it is a number alone
	least bool   // the figure should be the limit at least, not at most
	of    func(line) float64
	limit func(*report) float64
}

// met says whether a line's median keeps to the limit.
func (g goal) met(r *report, l line) bool {
	if g.least {
		return g.of(l) >= g.limit(r)
	}
	return g.of(l) <= g.limit(r)
}

func own(l line) float64   { return l.Spool.Median }
func added(l line) float64 { return l.Added.Median }
func ratio(l line) float64 { return l.Ratio.Median }

func number(v float64) func(*report) float64 { return func(*report) float64 { return v } }

// fixedGoals are those of single lines, by scenario and measure.
func fixedGoals() map[string]goal {
	return map[string]goal{
		"flat100: " + inRate:       {least: true, of: ratio, limit: number(1), why: "x proxy"},
		"flat1000: " + inRate:      {least: true, of: ratio, limit: number(1), why: "x proxy"},
		"flat100: " + inAllocs:     {of: own, limit: number(0.1)},
		"flat1000: " + inAllocs:    {of: own, limit: number(0.1)},
		"paced1000: " + inRate:     {least: true, of: own, limit: number(0.98 * 1000 * paceRate), why: "sustained"},
		"paced1000: " + inCPU:      {of: ratio, limit: number(1.5), why: "x proxy"},
		"idle: " + inResident:      {of: ratio, limit: number(1.25), why: "x proxy"},
		"wake: " + inWake99:        {of: own, limit: number(5)},
		"wake: " + inReads:         {of: own, limit: number(2), why: "with the commit's own, not one for each tailer"},
		"catchup: " + inSpeed:      {least: true, of: own, limit: number(500)},
		"catchup: " + inFirst99:    {of: own, limit: number(5)},
		"logflat: " + inKept:       {of: own, limit: number(1.6)},
		"logpaced: " + inKept:      {of: own, limit: number(1.6)},
		"logflat: " + inWAL:        {of: own, limit: number(4)},
		"retention: " + inGrown:    {of: own, limit: number(1.25)},
		"keptstart: " + inStart:    {of: own, limit: number(2)},
		"keptflat100: " + inRate:   {least: true, of: ratio, limit: number(0.9), why: "x empty"},
		"keptpaced100: " + inCPU:   {of: ratio, limit: number(1.1), why: "x empty"},
		"keptpaced100: " + inDelay: {of: ratio, limit: number(1.1), why: "x empty"},
		"keptttfb: " + inFirst50:   {of: ratio, limit: number(1.1), why: "x empty"},
		"paced100: " + inDelay:     {of: added, limit: flushesPlus(1, 0.3), why: "one flush + 0.3 ms over proxy"},
		"paced100: " + inDelay99:   {of: added, limit: func(r *report) float64 { return 3 * r.Machine.FlushP99 / 1000 }, why: "three flushes' p99 over proxy"},
		"ttfb1: " + inFirst50:      {of: added, limit: flushesPlus(2, 0.5), why: "two commits + 0.5 ms over proxy"},
		"ttfb: " + inFirst50:       {of: added, limit: flushesPlus(2, 0.5), why: "two commits + 0.5 ms over proxy"},
	}
}

// flushesPlus is a time in milliseconds.
func flushesPlus(n, more float64) func(*report) float64 {
	return func(r *report) float64 { return n*r.Machine.FlushP50/1000 + more }
}

// goalOf is a line's goal, where it has one. What an event costs must not grow with the number of runs:
// a line of the curve is held against the one before it.
func goalOf(r *report, l line) (goal, bool) {
	if strings.HasPrefix(l.Scenario, "runs") && l.Measure == inCPU {
		var before line
		for _, other := range r.Lines {
			if other.Scenario == l.Scenario {
				break
			}
			if strings.HasPrefix(other.Scenario, "runs") && other.Measure == inCPU {
				before = other
			}
		}
		return goal{of: own, limit: number(slack * own(before)), why: "flat or falling"}, before.Scenario != ""
	}
	g, ok := fixedGoals()[l.Scenario+": "+l.Measure]
	return g, ok
}
