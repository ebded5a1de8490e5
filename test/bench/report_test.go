package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sampleRunner has measured two rounds of a scenario with both programs, and one without the proxy.
func sampleRunner(t *testing.T) *runner {
	t.Helper()
	chosen, err := chooseScenarios("tailers,flat100", 50)
	if err != nil {
		t.Fatal(err)
	}
	flat := func(events int64, cpu float64, lost int64) outcome {
		return outcome{Seconds: 2, Events: events, TargetCPU: cpu, Others: 0.5, Checks: tally{Events: events, Lost: lost}}
	}
	return &runner{
		options: options{rounds: 2, measure: 2 * time.Second, sync: "full", scenarios: chosen, keptRuns: 7},
		targets: func(s scenario) []target { return s.targets(false) },
		out: []measured{
			{"flat100", targetProxy, 1, flat(2000, 0.002, 0)},
			{"flat100", targetSpool, 1, flat(1000, 0.002, 1)},
			{"tailers", targetSpool, 1, outcome{Resident: 2048}},
			{"flat100", targetSpool, 2, flat(4000, 0.004, 0)},
			{"flat100", targetProxy, 2, flat(4000, 0.002, 0)},
			{"tailers", targetSpool, 2, outcome{Resident: 4096}},
		},
	}
}

func TestReport_ComparesWithinEachRound(t *testing.T) {
	rep := sampleRunner(t).report()
	if len(rep.Lines) != 4 {
		t.Fatalf("got %+v", rep.Lines)
	}
	rate, cpu, memory := rep.Lines[0], rep.Lines[1], rep.Lines[3]
	if got, want := *rate.Ratio, (spread{0.5, 0.75, 1}); got != want {
		t.Errorf("ratio of rates: got %v, want %v", got, want)
	}
	if got, want := *rate.Added, (spread{-500, -250, 0}); got != want {
		t.Errorf("difference of rates: got %v, want %v", got, want)
	}
	if got, want := *cpu.Ratio, (spread{2, 2, 2}); got != want {
		t.Errorf("ratio of CPU: got %v, want %v", got, want)
	}
	if got, want := memory.Spool, (spread{2, 3, 4}); got != want || memory.Baseline != nil || memory.Ratio != nil || memory.Streams != tailerMany {
		t.Errorf("memory: got %+v", memory)
	}
	if got := rep.Checks[1]; got.Target != targetSpool || got.Lost != 1 || got.Events != 5000 {
		t.Errorf("checks: got %+v", got)
	}
}

func TestReport_PrintsATable(t *testing.T) {
	var b strings.Builder
	if err := sampleRunner(t).report().print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"other processes took 50 %", "--sync full", "median of 2 rounds",
		"0.75 (0.50 to 1.00)", "tailers (1000)", "not met: at least 1.00 x proxy", "one of 7 runs", "spool: 5000 events checked; lost 1, repeated or late 0",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestReport_WritesWhatItSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	rep := sampleRunner(t).report()
	if err := writeJSON(path, rep); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Lines) != len(rep.Lines) || *got.Lines[0].Ratio != *rep.Lines[0].Ratio || len(got.Measured) != 6 || got.Measured[1].Checks.Lost != 1 {
		t.Errorf("got %s", b)
	}
}

func TestGoals_HoldOnlyWhatIsMeasured(t *testing.T) {
	lines := map[string]bool{}
	for _, s := range scenarios() {
		for _, m := range measuresOf(s.kind) {
			lines[s.name+": "+m.name] = true
		}
	}
	for name := range fixedGoals() {
		if !lines[name] {
			t.Errorf("no line %q", name)
		}
	}
}

func TestGoalOf_TheCurveOfCostsIsHeldAgainstTheLineBefore(t *testing.T) {
	cost := func(runs int, us float64) line {
		return line{Scenario: fmt.Sprint("runs", runs), Streams: runs, Measure: inCPU, Spool: spread{Median: us}}
	}
	rep := &report{Lines: []line{cost(10, 20), cost(100, 21), cost(1000, 60), cost(10_000, 40)}}
	if _, ok := goalOf(rep, rep.Lines[0]); ok {
		t.Error("the first line has a goal")
	}
	for i, want := range []bool{true, false, true} {
		g, ok := goalOf(rep, rep.Lines[i+1])
		if !ok || g.met(rep, rep.Lines[i+1]) != want {
			t.Errorf("line %d: have a goal: %v, want it met: %v", i+1, ok, want)
		}
	}
}

func TestCapped_NamesWhatIsMeasured(t *testing.T) {
	chosen, err := chooseScenarios("idle,flat100", 5000)
	if err != nil {
		t.Fatal(err)
	}
	list := capped(chosen, 900)
	if list[0].streams != 100 || list[1].streams != 900 {
		t.Fatalf("got %+v", list)
	}
	if got := newLine(list[1], measuresOf(idle)[0], nil).name(); got != "idle (900)" {
		t.Errorf("got %q", got)
	}
}

func TestGoal_FlushesOfThisDisk(t *testing.T) {
	rep := &report{Machine: machine{FlushP50: 400, FlushP99: 2000}}
	l := line{Scenario: "paced100", Measure: inDelay, Added: &spread{Median: 0.7}}
	g, ok := goalOf(rep, l)
	if !ok || !g.met(rep, l) || g.text(rep) != "at most 0.70 one flush + 0.3 ms over proxy" {
		t.Errorf("got %q, a goal: %v", g.text(rep), ok)
	}
	l.Measure, l.Added.Median = inDelay99, 6.1
	if g, ok := goalOf(rep, l); !ok || g.met(rep, l) {
		t.Errorf("6.1 ms keeps to %q", g.text(rep))
	}
}

func TestParse_RefusesWhatItCannotMeasure(t *testing.T) {
	for _, args := range [][]string{
		{"--rounds", "-1"}, {"--rounds", "1000"}, {"--measure", "1ms"}, {"--measure", "2h"},
		{"--only", "flat7"}, {"--idle", "0"}, {"--kept-runs", "0"}, {"--sync", "off"}, {"extra"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	o, err := parse([]string{"--quick", "--only", "ttfb, flat100", "--rounds", "3"})
	if err != nil || o.rounds != 3 || o.measure != quickMeasure || len(o.scenarios) != 2 || o.scenarios[0].name != "flat100" {
		t.Errorf("got %+v %v", o, err)
	}
}

func TestParseCPU_ReadsTheFilesOfTheKernel(t *testing.T) {
	used, err := parseProcessCPU([]byte("42 (a ) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0\n"))
	if err != nil || used != 2 {
		t.Errorf("process: got %v %v", used, err)
	}
	busy, err := parseMachineCPU([]byte("cpu  100 200 300 4000 500 60 70 80 90 0\ncpu0 1 2\n"))
	if err != nil || busy != 8.1 {
		t.Errorf("machine: got %v %v", busy, err)
	}
	for _, bad := range []string{"", "cpu 1", "42 (x) S"} {
		if _, err := parseProcessCPU([]byte(bad)); err == nil {
			t.Errorf("process %q: no error", bad)
		}
		if _, err := parseMachineCPU([]byte(bad)); err == nil {
			t.Errorf("machine %q: no error", bad)
		}
	}
}
