package sdk

import (
	"math/rand/v2"
	"testing"

	"github.com/spool-dev/spool/test/cutter"
)

// following are clients that read a run through /events, and come back until they are told 204.
var following = []struct{ client, like client }{
	{
		client: client{name: "eventsource", language: js, dialect: responses},
		like:   client{name: "openai-responses", language: js, dialect: responses},
	},
	{
		client: client{name: "fetch-event-source-follower", language: js, dialect: anthropic},
		like:   client{name: "anthropic", language: js, dialect: anthropic},
	},
}

// followedRuns are read over connections that are cut. What such a reader sees is what an SDK sees that
// reads without a break, and nothing is bought again.
func followedRuns(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	type pair struct {
		proxy      *cutter.Cutter
		read, like job
	}
	var (
		pairs []pair
		jobs  []job
	)
	for _, f := range following {
		p := pair{
			// fetch-event-source gives back an id whose blank line did not come: that cut loses its event
			proxy: cutter.Start(t, r.spool, cutter.First(someCuts(random, cutter.Lines)...)),
			read:  f.client.job(f.client.name, r.spool+"/emu", "long"),
			like:  f.like.job(f.client.name+" unbroken", r.emulator, "long"),
		}
		p.read.Events = p.proxy.URL
		pairs, jobs = append(pairs, p), append(jobs, p.read, p.like)
	}
	results, calls := r.run(t, jobs), r.purchases(t)
	for _, p := range pairs {
		t.Run(p.read.ID, func(t *testing.T) {
			want, got := results[p.like.ID], results[p.read.ID]
			if !want.OK || got != want {
				t.Errorf("followed %+v\nunbroken %+v", got, want)
			}
			if n := p.proxy.Cuts(); n < cuts {
				t.Errorf("cut %d times only", n)
			}
			if n := calls[p.read.Model]; n != 1 {
				t.Errorf("bought %d times", n)
			}
		})
	}
}
