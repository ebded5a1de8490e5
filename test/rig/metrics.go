package rig

import (
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
)

// Figures makes every metric count something, and returns what /metrics says then.
func (g *Rig) Figures() string {
	g.t.Helper()
	answer := fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("a", "b"), 0)...)
	g.Fake.Script("primary", []fakellm.Op{fakellm.RST()}, answer) // the first attempt may have been paid for
	a := g.Chat("Idempotency-Key", "figures")
	g.Await(a.RunID(), buffer.Completed)
	g.Chat("Idempotency-Key", "figures")
	g.Do("GET", "/runs/"+a.RunID()+"/resume", "")
	g.Runs.Drain(g.t.Context()) // what is counted at the end of a run has been
	return string(g.Do("GET", "/metrics", "").Body)
}
