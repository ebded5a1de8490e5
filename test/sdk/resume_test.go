package sdk

import (
	"math/rand/v2"
	"testing"
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
		proxy := startCutter(t, r.spool, someLimits(random))
		direct := c.job(c.name+" direct", r.emulator, "long")
		cut := c.job(c.name+" cut", proxy.url+"/emu", "long")
		cut.Resume = proxy.url
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

// someLimits says after how many bytes each connection is cut: together less than the shortest
// stream of the prompt has, so that all of the cuts come.
func someLimits(random *rand.Rand) []int64 {
	limits := make([]int64, cuts)
	for i := range limits {
		limits[i] = 200 + random.Int64N(1000)
	}
	return limits
}
