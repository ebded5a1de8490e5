package main

import (
	"encoding/json"
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
		options: options{rounds: 2, measure: 2 * time.Second, sync: "full", scenarios: chosen},
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
	if len(rep.Lines) != 3 {
		t.Fatalf("got %+v", rep.Lines)
	}
	rate, cpu, memory := rep.Lines[0], rep.Lines[1], rep.Lines[2]
	if got, want := *rate.Ratio, (spread{0.5, 0.75, 1}); got != want {
		t.Errorf("ratio of rates: got %v, want %v", got, want)
	}
	if got, want := *rate.Added, (spread{-500, -250, 0}); got != want {
		t.Errorf("difference of rates: got %v, want %v", got, want)
	}
	if got, want := *cpu.Ratio, (spread{2, 2, 2}); got != want {
		t.Errorf("ratio of CPU: got %v, want %v", got, want)
	}
	if got, want := memory.Spool, (spread{2, 3, 4}); got != want || memory.Proxy != nil || memory.Ratio != nil || memory.Streams != 50 {
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
		"0.75 (0.50 to 1.00)", "tailers (50)", "spool: 5000 events checked; lost 1, repeated or late 0",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestReport_WritesWhatItSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	rep := sampleRunner(t).report()
	if err := rep.write(path); err != nil {
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

func TestParse_RefusesWhatItCannotMeasure(t *testing.T) {
	for _, args := range [][]string{
		{"--rounds", "-1"}, {"--rounds", "1000"}, {"--measure", "1ms"}, {"--measure", "2h"},
		{"--scenarios", "flat7"}, {"--tailers", "0"}, {"--sync", "off"}, {"extra"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	o, err := parse([]string{"--quick", "--scenarios", "ttfb, flat100", "--rounds", "3"})
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
