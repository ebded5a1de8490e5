package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// peersReport is all that bench-peers has to say, as it stands in the JSON file.
type peersReport struct {
	Machine  machine      `json:"machine"`
	Rounds   int          `json:"rounds"`
	Measure  float64      `json:"measure_seconds"`
	Sync     string       `json:"sync"`
	Time     time.Time    `json:"time"`
	Peers    []peerLine   `json:"peers"`
	Losses   []loss       `json:"losses"`
	Checks   []checksLine `json:"checks"`
	Measured []measured   `json:"measured"`
	Failed   []string     `json:"failed"`
}

// peerLine is one program over all rounds.
type peerLine struct {
	Target   target `json:"target"`
	Rate     spread `json:"events_per_second"`
	Paced    spread `json:"paced_events_per_second"` // of the 5,000 that the provider sends
	Added50  spread `json:"added_p50_ms"`            // to the delay of reading the provider directly
	Added99  spread `json:"added_p99_ms"`
	CPU      spread `json:"paced_cpu_us_per_event"`
	Resident spread `json:"resident_mib"` // all its processes, under the paced work
	Flat     spread `json:"resident_flat_mib"`
}

func (r *runner) peersReport() *peersReport {
	rep := &peersReport{
		Machine: r.machine(), Rounds: r.rounds, Measure: r.measure.Seconds(), Sync: r.sync, Time: time.Now().UTC(), Measured: r.out, Failed: r.failed,
	}
	values := func(scenario string, t target, of func(outcome) float64) (v []float64) {
		for _, o := range outcomes(r.out, scenario, t) {
			v = append(v, of(o))
		}
		return v
	}
	rate := func(o outcome) float64 { return share(float64(o.Events), o.Seconds) }
	memory := func(o outcome) float64 { return o.Memory / (1 << 20) }
	p50 := func(o outcome) float64 { return o.LatencyP50 / 1000 }
	p99 := func(o outcome) float64 { return o.LatencyP99 / 1000 }
	cpu := func(o outcome) float64 { return 1e6 * share(o.TargetCPU, float64(o.Events)) }
	for _, t := range peerTargets() {
		l := peerLine{
			Target: t,
			Rate:   spreadOf(values("flat100", t, rate)), Paced: spreadOf(values("paced100", t, rate)),
			CPU:      spreadOf(values("paced100", t, cpu)),
			Resident: spreadOf(values("paced100", t, memory)), Flat: spreadOf(values("flat100", t, memory)),
		}
		_, l.Added50 = compare(values("paced100", t, p50), values("paced100", targetDirect, p50))
		_, l.Added99 = compare(values("paced100", t, p99), values("paced100", targetDirect, p99))
		rep.Peers = append(rep.Peers, l)
		for _, s := range r.scenarios {
			c := checksLine{Scenario: s.name, Target: t}
			for _, o := range outcomes(r.out, s.name, t) {
				c.add(o.Checks)
			}
			rep.Checks = append(rep.Checks, c)
		}
	}
	return rep
}

// print writes the report for people.
func (r *peersReport) print(w io.Writer) error {
	var b strings.Builder
	r.Machine.print(&b)
	fmt.Fprintf(&b, "Spool with --sync %s; events of %d bytes; median of %d rounds (min to max)\n\n", r.Sync, eventSize, r.Rounds)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "100 streams\tflat out\t\tpaced, 50 events/s each: 5,000/s\t\t\t\t\t")
	fmt.Fprintln(t, "\tevents/s\tMiB\tevents/s\tadded p50, ms\tadded p99, ms\tCPU, µs/event\tMiB\t")
	for _, p := range r.Peers {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Target, ranged(&p.Rate), median(&p.Flat), median(&p.Paced),
			ranged(&p.Added50), ranged(&p.Added99), median(&p.CPU), median(&p.Resident))
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "kill -9 in mid-stream\tof\tseen\tgone\twhole\tcut\tended as if whole\tsilent\trefused\t")
	for _, l := range r.Losses {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", l.Target, l.Killed, l.Seen, l.Gone, l.Whole, l.Cut, l.Ended, l.Silent, l.Refused)
	}
	_ = t.Flush() // into memory: it cannot fail
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, "seen: events that clients had; gone: of those, not to be read after the restart. Then streams, read again from their")
	fmt.Fprintln(&b, "beginning: whole, to the provider's end; cut, aborted, so that the reader knows; silent, neither events nor an end; refused")
	fmt.Fprintln(&b)
	printChecks(&b, r.Checks)
	for _, f := range r.Failed {
		fmt.Fprintln(&b, "failed:", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
