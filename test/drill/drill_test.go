// Package drill is the fault list of a staging drill: each fault with the one action that must follow,
// printed as a table of what was expected and what was seen. `make drill` runs it.
package drill

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// fault is one row: what is staged, and what must come of it.
type fault struct {
	name    string
	body    string // of the call
	budget  string
	primary [][]fakellm.Op
	change  func(primary *provider.Route, fallback *provider.Fallback)
	before  func(t *testing.T, g *rig.Rig) // stages what is there before the call

	actions string // the ledger's, in order; "-" where nothing was sent
	state   buffer.State
	status  int // what the caller gets
	sends   int // on the primary and the fallback, for this call
}

const (
	plain  = `{"model":"m","stream":true}`
	schema = `{"model":"m","stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{}}}}`
	hosted = `{"model":"m","stream":true,"tools":[{"type":"web_search"}]}`
)

// refusal is an error answer with some headers, name by name.
func refusal(status int, kind, code string, headers ...string) []fakellm.Op {
	op := fakellm.JSON(status, fmt.Sprintf(`{"error":{"message":"staged","type":%q,"code":%q}}`, kind, code))
	op.Headers = map[string][]string{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		op.Headers[headers[i]] = []string{headers[i+1]}
	}
	return []fakellm.Op{op}
}

func answer() []fakellm.Op {
	return fakellm.Stream("text/event-stream", fakellm.Play(fakellm.Chat("a ", "b "), 0)...)
}

func faults() []fault {
	rate := refusal(429, "requests", "rate_limit_exceeded", "Retry-After-Ms", "20")
	quota := refusal(429, "insufficient_quota", "insufficient_quota")
	down := refusal(503, "server_error", "server_error", "Retry-After-Ms", "20")
	cut := append([]fakellm.Op{fakellm.Head("text/event-stream")}, append(fakellm.Play(fakellm.Chat("a ", "b ")[:3], 0), fakellm.RST())...)
	return []fault{
		{name: "rate 429", primary: [][]fakellm.Op{rate, answer()},
			actions: "primary:retry primary:complete", state: buffer.Completed, status: 200, sends: 2},
		{name: "quota 429", primary: [][]fakellm.Op{quota},
			actions: "primary:fallback fallback:complete", state: buffer.Completed, status: 200, sends: 2},
		{name: "503 before the stream", primary: [][]fakellm.Op{down, answer()},
			actions: "primary:retry primary:complete", state: buffer.Completed, status: 200, sends: 2},
		{name: "cut after tokens", primary: [][]fakellm.Op{cut},
			actions: "primary:interrupt", state: buffer.Interrupted, status: 200, sends: 1},
		{name: "timeout after a hosted tool started", body: hosted, primary: [][]fakellm.Op{{fakellm.Hang(0)}},
			change:  func(p *provider.Route, _ *provider.Fallback) { p.Clocks.Headers = 100 * time.Millisecond },
			actions: "primary:fail", state: buffer.Failed, status: 504, sends: 1},
		{name: "a fallback without the needed schema", body: schema, primary: [][]fakellm.Op{quota},
			change:  func(_ *provider.Route, f *provider.Fallback) { f.Schema = false },
			actions: "primary:fail", state: buffer.Failed, status: 429, sends: 1},
		{name: "an open circuit", primary: [][]fakellm.Op{down}, before: openCircuit,
			actions: "fallback:complete", state: buffer.Completed, status: 200, sends: 1},
		{name: "a hint of 60 s, 8 s left, a fallback of 2 s", budget: "elapsed=8s",
			primary: [][]fakellm.Op{refusal(429, "requests", "rate_limit_exceeded", "Retry-After", "60")},
			change:  func(_ *provider.Route, f *provider.Fallback) { f.Route.Expected = 2 * time.Second },
			actions: "primary:fallback fallback:complete", state: buffer.Completed, status: 200, sends: 2},
	}
}

// openCircuit fails the primary until its circuit opens, with calls that the fallback may not serve.
func openCircuit(t *testing.T, g *rig.Rig) {
	t.Helper()
	primary := g.Server.Providers["primary"]
	alone := primary
	alone.Fallbacks, alone.NoRetry = nil, true
	g.Server.Providers["primary"] = alone
	for i := 0; g.Runs.OpenCircuits() == 0; i++ {
		if i == 20 {
			t.Fatal("the circuit does not open")
		}
		g.Do("POST", "/primary/chat/completions", plain)
	}
	g.Server.Providers["primary"] = primary
}

func TestDrill(t *testing.T) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nfault\texpected\tseen\tverdict")
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			expected := fmt.Sprintf("%s → %s, %d, %d sends", f.actions, f.state, f.status, f.sends)
			seen := stage(t, f)
			verdict := "ok"
			if seen != expected {
				verdict = "WRONG"
				t.Errorf("seen %s, expected %s", seen, expected)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, expected, seen, verdict)
		})
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
}

// stage plays one fault and says what was seen.
func stage(t *testing.T, f fault) string {
	t.Helper()
	g := rig.New(t, rig.Options{Routes: func(fake string) map[string]provider.Route { return routes(t, fake, f.change) }})
	g.Fake.Script("primary", f.primary...)
	g.Fake.Script("fallback", answer())
	if f.before != nil {
		f.before(t, g)
	}
	sent := g.Fake.Count("")
	body, headers := f.body, []string(nil)
	if body == "" {
		body = plain
	}
	if f.budget != "" {
		headers = []string{"X-Buffer-Budget", f.budget}
	}
	a := g.Do("POST", "/primary/chat/completions", body, headers...)
	run := g.Await(a.RunID(), buffer.Completed, buffer.Interrupted, buffer.Failed)
	var actions []string
	for _, attempt := range run.Attempts {
		actions = append(actions, attempt.Route+":"+string(attempt.Action))
	}
	if len(actions) == 0 {
		actions = []string{"-"}
	}
	return fmt.Sprintf("%s → %s, %d, %d sends", strings.Join(actions, " "), run.State, a.Status, g.Fake.Count("")-sent)
}

func routes(t *testing.T, fake string, change func(*provider.Route, *provider.Fallback)) map[string]provider.Route {
	other := provider.Route{Name: "fallback", BaseURL: rig.Parse(t, fake+"/fallback")}
	primary := provider.Route{Name: "primary", BaseURL: rig.Parse(t, fake+"/primary")}
	f := provider.Fallback{Route: &other, Models: map[string]string{"m": "m2"}, Tools: true, Schema: true, OwnQuota: true}
	if change != nil {
		change(&primary, &f)
	}
	primary.Fallbacks = []provider.Fallback{f}
	return map[string]provider.Route{"primary": primary}
}
