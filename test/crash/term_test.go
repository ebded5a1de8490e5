package crash

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

func TestTerm_EndsCleanly(t *testing.T) {
	path := build(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *stopping)
	}{
		{"live runs end within the grace", withinGrace},
		{"live runs outlast the grace", beyondGrace},
		{"a second signal ends at once", secondSignal},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFolder(t, path, "t", rand.New(rand.NewPCG(1, 2)))
			test.run(t, &stopping{folder: f, t: t})
		})
	}
}

// stopping is a folder whose service is asked to stop while its clients read.
type stopping struct {
	*folder
	t       *testing.T
	p       *binary.Process
	a       *agent
	clients sync.WaitGroup
}

const (
	inMid  = 6 // clients that are reading when the signal comes
	before = 2 // clients that wait for their first content
)

// begin starts the service and its clients, and returns when the former read and the provider has
// been asked by the latter. Each answer stops in its middle until open is closed; the latter's
// before they begin.
func (s *stopping) begin(open <-chan struct{}, args ...string) {
	s.t.Helper()
	s.p = s.serve(s.t, args...)
	s.a = newAgent(s.p.URL)
	s.t.Cleanup(s.a.close)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)

	var reading sync.WaitGroup
	for i := range inMid + before {
		key := fmt.Sprintf("%s-%d", s.name, i)
		events := chat(s.rng, key, 20)
		ops := fakellm.Play(events, 0)
		at := len(ops) / 2
		if i >= inMid {
			at = 0
		}
		held := append(append(append([]fakellm.Op{}, ops[:at]...), fakellm.Gate(open)), ops[at:]...)
		c := newCall(key, "", script{events: events, status: 200, answers: playing(fakellm.Stream(contentType, held...))})
		s.fake.Script(key, c.answers...)
		s.calls = append(s.calls, c)
		begun := ignore
		if i < inMid {
			reading.Add(1)
			begun = func(seen) { reading.Done() }
		}
		s.clients.Go(func() { c.saw(s.a.post(ctx, c, math.MaxInt64, begun)) })
	}
	reading.Wait()
	if err := s.fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) == inMid+before }); err != nil {
		s.t.Fatal(err)
	}
}

// drained waits until the service says that it takes no new runs.
func (s *stopping) drained() {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); wait(s.t.Context(), 5*time.Millisecond) {
		if s.a.get(s.t.Context(), "/readyz").status == http.StatusServiceUnavailable {
			return
		}
	}
	s.t.Fatal("still ready after SIGTERM")
}

// found checks the log that was left behind, starts the service again and returns the state and the
// reason of the runs, and how many of them the start had to recover.
func (s *stopping) found() (states map[string]int, recovered int) {
	s.t.Helper()
	s.young = false
	s.look()
	p := s.serve(s.t)
	a := newAgent(p.URL)
	defer a.close()
	states = map[string]int{}
	for _, r := range s.list(s.t.Context(), a) {
		states[strings.TrimSpace(r.State+" "+r.Reason)]++
	}
	s.look()
	return states, p.Recovered
}

func (s *stopping) expect(states map[string]int, want string, n int) {
	s.t.Helper()
	if states[want] != n {
		s.t.Errorf("runs are %v, want %d %s", states, n, want)
	}
}

func withinGrace(t *testing.T, s *stopping) {
	open := make(chan struct{})
	s.begin(open, "--grace=1m")
	term(t, s.p)
	s.drained()
	late := newCall("late", "", steady(s.rng, "late"))
	if got := s.a.post(t.Context(), late, math.MaxInt64, ignore); got.status != http.StatusServiceUnavailable || !strings.Contains(string(got.bytes), "draining") {
		t.Errorf("a new call while draining: status %d, %s", got.status, got.bytes)
	}
	close(open)
	s.clients.Wait()
	if exit := code(t, s.p); exit != 0 {
		t.Errorf("exit code %d, printed %q", exit, s.p.Strays)
	}
	for _, c := range s.calls {
		if got := c.seen[0]; got.status != 200 || !got.clean || !bytes.Equal(got.bytes, c.all()) {
			t.Errorf("%s: status %d, clean %t, %d of %d bytes", c.key, got.status, got.clean, len(got.bytes), len(c.all()))
		}
	}
	states, recovered := s.found()
	s.expect(states, "completed", inMid+before)
	if recovered != 0 {
		t.Errorf("%d runs were left live", recovered)
	}
}

func beyondGrace(t *testing.T, s *stopping) {
	s.begin(nil, "--grace=300ms")
	term(t, s.p)
	s.clients.Wait()
	if exit := code(t, s.p); exit != 0 {
		t.Errorf("exit code %d, printed %q", exit, s.p.Strays)
	}
	for i, c := range s.calls {
		got := c.seen[0]
		if i >= inMid {
			if got.status != http.StatusServiceUnavailable || !got.clean {
				t.Errorf("%s had no content: status %d, clean %t, %s", c.key, got.status, got.clean, got.bytes)
			}
			continue
		}
		rest, begins := bytes.CutPrefix(got.bytes, c.first(int64(len(c.events)/2)))
		if got.clean || !begins || !bytes.HasPrefix(rest, []byte(errorEvent)) || !bytes.Contains(rest, []byte("shutdown")) {
			t.Errorf("%s: clean %t, the provider's events %t, then %q", c.key, got.clean, begins, rest)
		}
	}
	states, recovered := s.found()
	s.expect(states, "interrupted shutdown", inMid)
	s.expect(states, "failed shutdown", before)
	if recovered != 0 {
		t.Errorf("%d runs were left live", recovered)
	}
}

// secondSignal has no grace that would end: only a second signal can.
func secondSignal(t *testing.T, s *stopping) {
	s.begin(nil)
	term(t, s.p)
	s.drained()
	s.p.Insist()
	if exit := code(t, s.p); exit != 1 {
		t.Errorf("exit code %d, printed %q", exit, s.p.Strays)
	}
	s.clients.Wait()
	states, recovered := s.found()
	s.expect(states, "interrupted owner_lost", inMid)
	s.expect(states, "failed owner_lost", before)
	if recovered != inMid+before {
		t.Errorf("%d runs were recovered", recovered)
	}
}
