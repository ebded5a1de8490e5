package sdk

import (
	"math/rand/v2"
	"testing"

	"github.com/spool-dev/spool/test/cutter"
)

// cuts is how often each stream is cut. Cloudflare's client gives up at its sixth.
const cuts = 4

// cutConnections cuts what lies between client and Spool, again and again. Cloudflare's client mends
// the stream below the SDK, which must not notice, and nothing is bought again.
func cutConnections(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	type mended struct{ direct, cut job }
	var (
		pairs []mended
		jobs  []job
	)
	for _, c := range clients {
		if !c.fetch {
			continue
		}
		proxy := cutter.Start(t, r.spool, cutter.First(someCuts(random, cutter.Body)...))
		direct := c.job(c.name+" direct", r.emulator, "long")
		cut := c.job(c.name+" cut", proxy.URL+"/emu", "long")
		cut.Resume = proxy.URL
		pairs = append(pairs, mended{direct, cut})
		jobs = append(jobs, direct, cut)
	}
	results, calls := r.run(t, jobs), r.purchases(t)
	for _, p := range pairs {
		t.Run(p.cut.Client, func(t *testing.T) {
			want, got := results[p.direct.ID], results[p.cut.ID]
			want.Reconnects = cuts
			if !want.OK || got != want {
				t.Errorf("cut    %+v\nwithout %+v", got, want)
			}
			if n := calls[p.cut.Model]; n != 1 {
				t.Errorf("bought %d times", n)
			}
		})
	}
}

// someCuts are those of the connections of one stream, each after some bytes of its body: together they
// let less through than the shortest stream of the prompt has, so that all of them come.
func someCuts(random *rand.Rand, after func(bytes int64) cutter.Cut) []cutter.Cut {
	some := make([]cutter.Cut, cuts)
	for i := range some {
		some[i] = after(200 + random.Int64N(1000)).Somehow(random)
	}
	return some
}
