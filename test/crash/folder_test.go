package crash

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	random "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

const (
	newCalls   = 7                      // in each life, besides those that are tried again
	lastMoment = 500 * time.Millisecond // the longest that a life serves before it is killed
	startUp    = 80 * time.Millisecond  // about what a start takes
	attempts   = 3                      // the default budget of a key
	manyFaults = 20                     // after which a folder is given up
)

// folder is one data folder over many lives of the service.
type folder struct {
	service
	tally
	t     *testing.T
	rng   *random.Rand
	fake  *fakellm.Server
	args  []string
	name  string
	calls []*call
	fresh []*call             // calls that were made since the last verification
	again []*call             // calls that failed and may be bought again
	ended map[string]wire.Run // as an earlier life ended them
	young bool                // no life has served yet: there may be no log to check
}

func newFolder(t *testing.T, path, name string, rng *random.Rand, args ...string) *folder {
	t.Helper()
	fake := fakellm.Start(t, fakellm.Config{})
	return &folder{
		service: newService(t, path, fake.URL),
		tally:   tally{states: map[string]int{}},
		t:       t, rng: rng, fake: fake, args: args, name: name, ended: map[string]wire.Run{}, young: true,
	}
}

// wrong notes something that must not be.
func (f *folder) wrong(format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("life %d: %s", f.kills, fmt.Sprintf(format, args...))
	if f.faults++; f.faults >= manyFaults {
		f.t.Fatal("too many faults")
	}
}

// killWhileStarting kills a life at a moment of its start, or shortly after.
func (f *folder) killWhileStarting() {
	p := f.start(f.t, f.args...)
	wait(f.t.Context(), time.Duration(f.rng.Int64N(int64(startUp))))
	f.starting++
	f.end(p)
}

// killAtWork verifies what the lives before left behind, and kills the service under load.
func (f *folder) killAtWork() {
	p := f.serve(f.t, f.args...)
	f.young = false
	a := newAgent(p.URL)
	f.verify(a, f.fresh)

	moment := time.Duration(1 + f.rng.Int64N(int64(lastMoment)))
	f.fresh = append(f.again, f.invent()...)
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	var clients sync.WaitGroup
	for _, c := range f.fresh {
		plan := f.plan(moment)
		clients.Go(func() { a.play(ctx, c, plan) })
	}
	f.clients += len(f.fresh)
	wait(ctx, moment)
	f.end(p)
	clients.Wait()
	if ctx.Err() != nil {
		f.t.Fatal("a client still waits for a service that was killed")
	}
	a.close()
}

// end is kill -9, and a look at what it left behind.
func (f *folder) end(p *binary.Process) {
	select {
	case <-p.Exited:
		f.wrong("it ended by itself: %q", p.Strays)
	default:
	}
	p.Kill()
	f.kills++
	for _, line := range p.Strays {
		f.wrong("it printed %q", line)
	}
	f.look()
}

// look runs the check on the folder as it is.
func (f *folder) look() {
	if f.young {
		return
	}
	if err := f.Check(f.t.Context()); err != nil {
		f.wrong("%v", err)
	}
}

// invent makes the new calls of a life, and teaches the provider its answers.
func (f *folder) invent() []*call {
	var calls []*call
	for range newCalls {
		key := fmt.Sprintf("%s-%d", f.name, len(f.calls))
		id := ""
		if f.rng.IntN(4) == 0 {
			id = ulid.MustNew(ulid.Now(), rand.Reader).String()
		}
		c := newCall(key, id, scripts[f.rng.IntN(len(scripts))](f.rng, key))
		f.fake.Script(key, c.answers...)
		f.calls = append(f.calls, c)
		calls = append(calls, c)
	}
	return calls
}

// plan says what the clients of a call do in a life that serves until moment.
func (f *folder) plan(moment time.Duration) plan {
	p := plan{
		begin: time.Duration(f.rng.Int64N(int64(moment))) * 2 / 3,
		limit: math.MaxInt64,
		early: f.rng.IntN(3) == 0,
		tail:  f.rng.IntN(2) == 0,
		ack:   f.rng.IntN(6) == 0,
	}
	if f.rng.IntN(5) == 0 {
		p.limit = 1 + f.rng.Int64N(3000)
	}
	if f.rng.IntN(8) == 0 {
		p.cancel = time.Duration(1 + f.rng.Int64N(int64(moment)))
	}
	return p
}

// finish verifies all calls of the folder once more, stops the service as it is meant to be stopped,
// and counts.
func (f *folder) finish() {
	p := f.serve(f.t, f.args...)
	a := newAgent(p.URL)
	f.verify(a, f.calls)
	f.count(f.list(f.t.Context(), a))
	f.verifyBodies()
	a.close()
	term(f.t, p)
	if exit := code(f.t, p); exit != 0 {
		f.wrong("SIGTERM: exit code %d", exit)
	}
	f.look()
}

// verifyBodies verifies that the provider was asked by each call for what the call asked for.
func (f *folder) verifyBodies() {
	bodies := map[string]string{}
	for _, c := range f.calls {
		bodies[c.key] = c.body
	}
	for _, r := range f.fake.Requests() {
		if body, ok := bodies[r.Route]; !ok || body != string(r.Body) {
			f.wrong("the provider was asked for %s with %q", r.Target, r.Body)
		}
	}
}

// list is all runs of the log, by id.
func (f *folder) list(ctx context.Context, a *agent) map[string]wire.Run {
	runs := map[string]wire.Run{}
	for after := ""; ; {
		path := "/runs?limit=200"
		if after != "" {
			path += "&after=" + after
		}
		s := a.get(ctx, path)
		var page wire.RunList
		if err := json.Unmarshal(s.bytes, &page); s.status != 200 || err != nil {
			f.t.Fatalf("list: status %d, %v", s.status, err)
		}
		for _, r := range page.Runs {
			runs[r.ID] = r
		}
		if after = page.Next; after == "" {
			return runs
		}
	}
}

// count sums up all that was seen of the folder and what became of its runs.
func (f *folder) count(runs map[string]wire.Run) {
	for _, c := range f.calls {
		for _, s := range c.seen {
			f.events += events(s.bytes)
		}
	}
	for _, r := range runs {
		f.states[r.State+" "+r.Reason]++
		if r.RetryOf != "" {
			f.repurchases++
		}
	}
	f.runs += len(runs)
	f.requests += f.fake.Count("")
}
