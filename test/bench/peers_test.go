package main

import (
	"slices"
	"strings"
	"testing"
)

func TestPeersReport_AddsToTheDelayOfReadingDirectly(t *testing.T) {
	delay := func(us float64) outcome {
		return outcome{Seconds: 1, Events: 5000, LatencyP50: us, LatencyP99: 2 * us, Memory: 3 << 20}
	}
	r := &runner{
		options: options{rounds: 2, sync: "full", scenarios: peerScenarios()},
		out: []measured{
			{"paced100", targetDirect, 1, delay(1000)}, {"paced100", targetResumable, 1, delay(3000)},
			{"paced100", targetResumable, 2, delay(6000)}, {"paced100", targetDirect, 2, delay(2000)},
		},
	}
	rep := r.peersReport()
	i := slices.IndexFunc(rep.Peers, func(p peerLine) bool { return p.Target == targetResumable })
	got := rep.Peers[i]
	if want := (spread{2, 3, 4}); got.Added50 != want || got.Resident.Median != 3 || got.Paced.Median != 5000 {
		t.Errorf("got %+v, want %v added", got, want)
	}
	rep.Losses = []loss{{Target: targetResumable, Killed: "redis", Streams: 20, Seen: 77, Gone: 66, Refused: 20}}
	var b strings.Builder
	if err := rep.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.00 (2.00 to 4.00)", "durable-streams, batched", "77", "66"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestRedisArgs(t *testing.T) {
	args, err := redisArgs("127.0.0.1:7", "/x", true)
	if want := "--bind 127.0.0.1 --port 7 --dir /x --appendonly yes --appendfsync always"; err != nil || strings.Join(args, " ") != want {
		t.Errorf("got %q %v", args, err)
	}
	if args, _ := redisArgs("127.0.0.1:7", "/x", false); len(args) != 6 {
		t.Errorf("Redis as it ships: got %q", args)
	}
}
