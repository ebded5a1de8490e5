package sdk

import (
	"net/http"
	"strings"
	"testing"
)

// attempts is how often a run is sent at most, by default: one budget for whoever retries, Spool or
// the SDK. Of the SDKs only openai-agents does here; the others are told not to.
const attempts = 3

// pair is one prompt of one client, asked for without Spool and through it.
type pair struct {
	client        client
	prompt        string
	direct, spool result
	calls, bought int // of the provider: without Spool, and through it
}

// ask asks every prompt through every client, both ways.
func (r *rig) ask(t *testing.T, prompts ...string) []pair {
	t.Helper()
	var jobs []job
	for _, c := range clients {
		for _, prompt := range prompts {
			jobs = append(jobs,
				c.job(c.name+" "+prompt+" direct", r.emulator, prompt),
				c.job(c.name+" "+prompt+" spool", r.spool+"/emu", prompt))
		}
	}
	results, calls := r.run(t, jobs), r.purchases(t)
	var pairs []pair
	for i := 0; i < len(jobs); i += 2 {
		direct, spool := jobs[i], jobs[i+1]
		pairs = append(pairs, pair{
			client: clients[i/2/len(prompts)], prompt: direct.Prompt,
			direct: results[direct.ID], spool: results[spool.ID],
			calls: calls[direct.Model], bought: calls[spool.Model],
		})
	}
	return pairs
}

func wholePrompts(t *testing.T, r *rig) {
	for _, p := range r.ask(t, "hello", "weather", "think") {
		t.Run(p.client.name+" "+p.prompt, func(t *testing.T) {
			if !p.direct.OK {
				t.Fatalf("the emulator itself: %+v", p.direct)
			}
			if p.spool != p.direct {
				t.Errorf("through Spool %+v\nwithout       %+v", p.spool, p.direct)
			}
			if p.bought != p.calls {
				t.Errorf("bought %d times, want %d", p.bought, p.calls)
			}
		})
	}
}

// brokenPrompts are answers that the provider breaks off.
func brokenPrompts(t *testing.T, r *rig) {
	sentences := map[string]string{
		"truncate":   "This sentence is much too long to be finished by a server that stops after three chunks.",
		"disconnect": "This sentence is much too long to be finished by a server that hangs up so early.",
	}
	for _, p := range r.ask(t, "truncate", "disconnect") {
		t.Run(p.client.name+" "+p.prompt, func(t *testing.T) {
			wantBroken(t, p.spool)
			if !strings.HasPrefix(sentences[p.prompt], p.spool.Text) {
				t.Errorf("pieces of several answers: %q", p.spool.Text)
			}
			if p.bought < 1 || p.bought > attempts {
				t.Errorf("bought %d times, want 1 to %d", p.bought, attempts)
			}
		})
	}
}

// wantBroken wants an error after some of the answer, or before it the status of an upstream that
// broke off.
func wantBroken(t *testing.T, got result) {
	t.Helper()
	if got.OK {
		t.Errorf("a broken answer looks whole: %+v", got)
	}
	if got.Events == 0 && got.Error.Status != http.StatusBadGateway {
		t.Errorf("neither a stream nor a refusal: %+v", got)
	}
}

// refusedPrompts are calls that the provider answers with a status.
func refusedPrompts(t *testing.T, r *rig) {
	for _, p := range r.ask(t, "err429", "err503", "err529") {
		t.Run(p.client.name+" "+p.prompt, func(t *testing.T) {
			got, want := p.spool.Error, p.direct.Error
			if p.spool.OK || got.Name != want.Name || got.Status != want.Status {
				t.Errorf("raised %+v, want %+v", got, want)
			}
			if p.bought < 1 || p.bought > attempts {
				t.Errorf("bought %d times, want 1 to %d", p.bought, attempts)
			}
		})
	}
}
