package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"time"
)

// report is all that a bench has to say, as it stands in the JSON file.
type report struct {
	Machine   machine      `json:"machine"`
	Rounds    int          `json:"rounds"`
	Measure   float64      `json:"measure_seconds"`
	Sync      string       `json:"sync"`
	Time      time.Time    `json:"time"`
	KeptRuns  int          `json:"kept_runs"`
	Lines     []line       `json:"lines"`
	Checks    []checksLine `json:"checks"`
	Measured  []measured   `json:"measured"`
	Failed    []string     `json:"failed"`
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
	Others   spread  `json:"others"`  // share of the CPUs that unrelated processes took
	Network  string  `json:"network"` // own: of a namespace with small receive buffers; shared: the machine's
}

// line is one measure of one scenario over all rounds. The comparisons were made within each round.
type line struct {
	Scenario string  `json:"scenario"`
	Streams  int     `json:"streams"`
	Measure  string  `json:"measure"`
	Against  target  `json:"against,omitempty"`  // what Spool is compared with
	Baseline *spread `json:"baseline,omitempty"` // nil where it is compared with nothing, as Ratio and Added
	Nginx    *spread `json:"nginx,omitempty"`
	Spool    spread  `json:"spool"`
	Ratio    *spread `json:"ratio,omitempty"` // spool / baseline
	Added    *spread `json:"added,omitempty"` // spool - baseline
	Goal     string  `json:"goal,omitempty"`
	Met      *bool   `json:"met,omitempty"`
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
		KeptRuns: r.keptRuns, Measured: r.out, Failed: r.failed, Machine: r.machine(),
	}
	for _, s := range r.scenarios {
		if len(outcomes(r.out, s.name, s.of)) == 0 {
			continue // it has failed in every round
		}
		for _, m := range measuresOf(s.kind) {
			rep.Lines = append(rep.Lines, newLine(s, m, r.out))
		}
		for _, t := range r.targets(s) {
			c := checksLine{Scenario: s.name, Target: t}
			for _, o := range outcomes(r.out, s.name, t) {
				c.add(o.Checks)
			}
			rep.Checks = append(rep.Checks, c)
		}
	}
	for i := range rep.Lines {
		l := &rep.Lines[i]
		if g, ok := goalOf(rep, *l); ok {
			met := g.met(rep, *l)
			l.Goal, l.Met = g.text(rep), &met
		}
	}
	return rep
}

func (r *runner) machine() machine {
	return machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), CPU: cpuModel(), Cores: runtime.NumCPU(),
		FlushP50: r.disk.quantile(0.5), FlushP99: r.disk.quantile(0.99), Others: others(r.out),
		Network: cmp.Or(os.Getenv(networkEnv), "shared"),
	}
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

func newLine(s scenario, m measureOf, all []measured) line {
	values := func(t target) (v []float64) {
		for _, o := range outcomes(all, s.name, t) {
			v = append(v, m.of(o))
		}
		return v
	}
	mine := values(s.of)
	l := line{Scenario: s.name, Streams: s.streams, Measure: m.name, Against: s.against, Spool: spreadOf(mine)}
	if m.name == inAllocs || s.against == "" {
		return l // other programs do not tell
	}
	baseline := values(s.against)
	ratio, added := compare(mine, baseline)
	base := spreadOf(baseline)
	l.Baseline, l.Ratio, l.Added = &base, &ratio, &added
	if v := values(targetNginx); len(v) > 0 {
		n := spreadOf(v)
		l.Nginx = &n
	}
	return l
}

// compare compares what one program and another gave, round by round.
func compare(a, b []float64) (ratio, added spread) {
	var ratios, differences []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, share(a[i], b[i]))
		differences = append(differences, a[i]-b[i])
	}
	return spreadOf(ratios), spreadOf(differences)
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

// writeJSON puts a report into a file.
func writeJSON(path string, report any) error {
	b, err := json.MarshalIndent(report, "", "  ")
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
