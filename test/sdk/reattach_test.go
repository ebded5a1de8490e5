package sdk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
)

// reattaching are clients that begin a response, lose it, and go on by OpenAI's background protocol.
var reattaching = []struct {
	client client
	cut    bool   // loses its connection; else it leaves by itself
	like   client // reads without a break
}{
	{
		client: client{name: "openai-responses-retrieve", language: js, dialect: responses}, cut: true,
		like: client{name: "openai-responses", language: js, dialect: responses},
	},
	{
		client: client{name: "openai-responses-helper-reattach", language: js, dialect: responses},
		like:   client{name: "openai-responses", language: js, dialect: responses},
	},
	{
		client: client{name: "openai-go-retrieve", language: golang, dialect: responses}, cut: true,
		like: client{name: "openai-go-responses", language: golang, dialect: responses},
	},
}

// reattachedResponses are responses of several providers that were not asked to run in the
// background. What the clients see must be what one sees that reads without a break, and nothing is
// bought again.
func reattachedResponses(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	type pair struct {
		tape         string
		cutter       *cutter.Cutter // nil for a client that leaves by itself
		broken, like job
	}
	var (
		pairs []pair
		jobs  []job
	)
	for rec := range onePerFamily(r.recordings) {
		if rec.Dialect != responses {
			continue
		}
		for i, re := range reattaching {
			p := pair{tape: fmt.Sprintf("/%s,chunk=%d", rec.Name, 1001+i)} // of its own, to be counted by
			base := r.spool
			if re.cut {
				p.cutter = cutter.Start(t, r.spool, cutter.First(cutter.Body(someCut(random, rec)).Somehow(random)))
				base = p.cutter.URL
			}
			p.broken = re.client.job(re.client.name+" "+rec.Name, base+"/tape"+p.tape, "hello")
			p.like = re.like.job(p.broken.ID+" unbroken", r.tapes.URL+"/"+rec.Name, "hello")
			pairs, jobs = append(pairs, p), append(jobs, p.broken, p.like)
		}
	}
	results := r.run(t, jobs)
	for _, p := range pairs {
		t.Run(p.broken.ID, func(t *testing.T) {
			want, got := results[p.like.ID], results[p.broken.ID]
			if !want.OK || got != want {
				t.Errorf("reattached %+v\nunbroken   %+v", got, want)
			}
			if p.cutter != nil && p.cutter.Connections() < 2 {
				t.Error("the connection was not cut")
			}
			bought := 0
			for _, asked := range r.tapes.Requests() {
				if strings.HasPrefix(asked.Target, p.tape+"/") {
					bought++
				}
			}
			if bought != 1 {
				t.Errorf("the provider was asked %d times", bought)
			}
		})
	}
}

// someCut is after how many bytes a connection is cut: behind the first events, which tell the
// response's id, and before the last.
func someCut(random *rand.Rand, rec fakellm.Recording) int64 {
	told := bytes.Index(rec.Body, []byte("response.in_progress"))
	told += bytes.Index(rec.Body[told:], []byte("\n\n"))
	return int64(told + 200 + random.IntN(max(1, len(rec.Body)-told-400)))
}
