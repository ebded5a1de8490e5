package main

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"time"
)

// measureOf is one number of a measurement that is worth a line.
type measureOf struct {
	name string // with its unit
	of   func(outcome) float64
}

// measuresOf says what the numbers of a scenario are read for.
func measuresOf(k kind) []measureOf {
	rate := measureOf{"events/s", func(o outcome) float64 { return share(float64(o.Events), o.Seconds) }}
	cpu := measureOf{"CPU, µs/event", func(o outcome) float64 { return 1e6 * share(o.TargetCPU, float64(o.Events)) }}
	switch k {
	case flat:
		return []measureOf{rate, cpu}
	case paced:
		return []measureOf{
			{"delay p50, ms", func(o outcome) float64 { return o.LatencyP50 / 1000 }},
			{"delay p99, ms", func(o outcome) float64 { return o.LatencyP99 / 1000 }},
			cpu, rate,
		}
	case first:
		return []measureOf{
			{"first event p50, ms", func(o outcome) float64 { return o.FirstP50 / 1000 }},
			{"first event p99, ms", func(o outcome) float64 { return o.FirstP99 / 1000 }},
		}
	}
	return []measureOf{{"resident KiB/stream", func(o outcome) float64 { return o.Resident / 1024 }}}
}

func share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// report is all that a bench has to say, as it stands in the JSON file.
type report struct {
	Machine   machine      `json:"machine"`
	Rounds    int          `json:"rounds"`
	Measure   float64      `json:"measure_seconds"`
	Sync      string       `json:"sync"`
	Time      time.Time    `json:"time"`
	Lines     []line       `json:"lines"`
	Checks    []checksLine `json:"checks"`
	Measured  []measured   `json:"measured"`
	EventSize int          `json:"event_bytes"`
}

// machine is what the numbers depend on besides the programs.
type machine struct {
	System   string  `json:"system"`
	Go       string  `json:"go"`
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	FlushP50 float64 `json:"flush_p50_us"` // 4 KiB appended and flushed
	FlushP99 float64 `json:"flush_p99_us"`
	Others   spread  `json:"others"` // share of the CPUs that unrelated processes took
}

// line is one measure of one scenario over all rounds. The comparisons were made within each round.
type line struct {
	Scenario string  `json:"scenario"`
	Streams  int     `json:"streams"`
	Measure  string  `json:"measure"`
	Proxy    *spread `json:"proxy,omitempty"` // nil where the scenario has no proxy, as the next ones
	Spool    spread  `json:"spool"`
	Ratio    *spread `json:"ratio,omitempty"` // spool / proxy
	Added    *spread `json:"added,omitempty"` // spool - proxy
}

// checksLine is what the clients checked of one program in all measurements of a scenario.
type checksLine struct {
	Scenario string `json:"scenario"`
	Target   target `json:"target"`
	tally
}

func (r *runner) report() *report {
	rep := &report{
		Rounds: r.rounds, Measure: r.measure.Seconds(), Sync: r.sync, Time: time.Now().UTC(), EventSize: eventSize,
		Measured: r.out,
		Machine: machine{
			System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), CPU: cpuModel(), Cores: runtime.NumCPU(),
			FlushP50: r.disk.quantile(0.5), FlushP99: r.disk.quantile(0.99), Others: others(r.out),
		},
	}
	for _, s := range r.scenarios {
		proxy, spool := outcomes(r.out, s.name, targetProxy), outcomes(r.out, s.name, targetSpool)
		for _, m := range measuresOf(s.kind) {
			rep.Lines = append(rep.Lines, newLine(s, m, proxy, spool))
		}
		for _, t := range s.targets() {
			c := checksLine{Scenario: s.name, Target: t}
			for _, o := range outcomes(r.out, s.name, t) {
				c.add(o.Checks)
			}
			rep.Checks = append(rep.Checks, c)
		}
	}
	return rep
}

// outcomes are those of one scenario and program, one a round.
func outcomes(all []measured, scenario string, t target) (of []outcome) {
	for _, m := range all {
		if m.Scenario == scenario && m.Target == t {
			of = append(of, m.outcome)
		}
	}
	return of
}

func newLine(s scenario, m measureOf, proxy, spool []outcome) line {
	values := func(of []outcome) (v []float64) {
		for _, o := range of {
			v = append(v, m.of(o))
		}
		return v
	}
	a, b := values(proxy), values(spool)
	l := line{Scenario: s.name, Streams: s.streams, Measure: m.name, Spool: spreadOf(b)}
	if len(a) == 0 {
		return l
	}
	var ratio, added []float64
	for i := range min(len(a), len(b)) {
		ratio = append(ratio, share(b[i], a[i]))
		added = append(added, b[i]-a[i])
	}
	x, y, z := spreadOf(a), spreadOf(ratio), spreadOf(added)
	l.Proxy, l.Ratio, l.Added = &x, &y, &z
	return l
}

// others is over the measurements that took a sample.
func others(all []measured) spread {
	var v []float64
	for _, m := range all {
		if m.Seconds > 0 {
			v = append(v, m.Others)
		}
	}
	return spreadOf(v)
}

// write puts the report into a file.
func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// cpuModel is the name of the first processor, where the system has one.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
