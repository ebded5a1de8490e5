package buffer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The wait before a retry is the provider's hint or a full-jitter backoff, whichever is longer: jitter
// only adds.
func TestRetry_WaitsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	const second = time.Second
	var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name     string
			refusal  fakellm.Op
			hint     time.Duration
			min, max time.Duration
		}{
			{"seconds", refusal(429, "Retry-After", "7"), 7 * second, 7 * second, 7 * second},
			{"fraction", refusal(429, "Retry-After", "1.5"), 1500 * time.Millisecond, 1500 * time.Millisecond, 1500 * time.Millisecond},
			{"the longest that is waited for", refusal(503, "Retry-After", "15"), 15 * second, 15 * second, 15 * second},
			{"milliseconds outrank seconds", refusal(429, "Retry-After", "7", "Retry-After-Ms", "2500"), 2500 * time.Millisecond, 2500 * time.Millisecond, 2500 * time.Millisecond},
			{"a date against the answer's own", refusal(429, "Retry-After", start.Add(9*second).Format(http.TimeFormat), "Date", start.Format(http.TimeFormat)), 9 * second, 9 * second, 9 * second},
			{"in words", refusalOf(429, `{"error":{"code":"rate_limit_exceeded","message":"Please try again in 3s."}}`), 3 * second, 3 * second, 3 * second},
			{"a short hint", refusal(429, "Retry-After-Ms", "5"), 5 * time.Millisecond, 5 * time.Millisecond, second / 2},
			{"no hint", refusal(503), 0, 0, second / 2},
		} {
			r.begin(row.name)
			r.fake.Script("primary", []fakellm.Op{row.refusal}, whole("a "))
			run := r.do(r.call())
			r.wantState(run, buffer.Completed, "")
			if a := run.Attempts[0]; a.Action != policy.Retry || a.Hint != row.hint || a.SentState != policy.WasRefused || a.Billed != policy.BilledNo {
				r.Errorf("the refused row: %+v", a)
			}
			sends := r.sends()
			if got := sends[1].At.Sub(sends[0].At); got < row.min || got > row.max {
				r.Errorf("waited %s, want %s to %s", got, row.min, row.max)
			}
			r.wantSends(2)
		}
	})
}

// A date in Retry-After counts from the answer's arrival where the answer has no Date.
func TestRetry_WaitsUntilADateWithoutADate(t *testing.T) {
	bubble(t, func(r *rig) {
		until := time.Now().Add(9 * time.Second).Truncate(time.Second)
		r.fake.Script("primary", []fakellm.Op{refusal(429, "Retry-After", until.UTC().Format(http.TimeFormat))}, whole("a "))
		run := r.do(r.call())
		r.wantState(run, buffer.Completed, "")
		r.wantSends(2)
		if at := r.sends()[1].At; at.Before(until) {
			r.Errorf("sent again %s too early, hint %s", until.Sub(at), run.Attempts[0].Hint)
		}
	})
}

// Without a hint the ceiling of the backoff doubles, and stays at 8 s.
func TestRetry_BackoffDoubles(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", []fakellm.Op{refusal(503)})
		c := r.call()
		c.Run.Budget.Attempts = 4 // no more than what opens the route's circuit
		run := r.do(c)
		r.wantSends(4)
		sends := r.sends()
		for i, ceiling := range []time.Duration{time.Second / 2, time.Second, 2 * time.Second} {
			if got := sends[i+1].At.Sub(sends[i].At); got < 0 || got > ceiling {
				r.Errorf("wait %d was %s, want at most %s", i+1, got, ceiling)
			}
		}
		r.wantState(run, buffer.Failed, buffer.BudgetSpent)
	})
}

// What may not be waited for is not waited for.
func TestRetry_IsNotWhatTheProviderForbids(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name    string
			refusal fakellm.Op
			class   policy.Class
		}{
			{"a hint beyond what a caller waits for", refusal(429, "Retry-After", "16"), policy.Rate},
			{"x-should-retry: false", refusal(503, "X-Should-Retry", "false"), policy.Transient},
			{"a bad request", refusal(400), policy.Request},
			{"a bad key", refusal(401), policy.Auth},
			{"no credit", refusalOf(429, `{"error":{"code":"insufficient_quota"}}`), policy.Quota},
			{"a policy", refusalOf(400, `{"error":{"code":"content_policy_violation"}}`), policy.Policy},
			{"nobody knows what", refusal(500), policy.Unknown},
			{"a page under 200", htmlPage(), policy.Unknown},
		} {
			r.begin(row.name)
			r.fake.Script("primary", []fakellm.Op{row.refusal}, whole("bought twice"))
			run := r.do(r.call())
			r.wantState(run, buffer.Failed, buffer.Refused)
			if got := entries(run); len(got) != 1 || got[0].Class != row.class || got[0].Action != policy.Fail {
				r.Errorf("ledger: %+v", got)
			}
			if got := run.Ended.Sub(run.Created); got != 0 {
				r.Errorf("failed after %s, want at once", got)
			}
			r.wantSends(1)
		}
	})
}

func htmlPage() fakellm.Op {
	op := fakellm.JSON(200, "<html><body>Bad gateway</body></html>")
	op.Headers = map[string][]string{"Content-Type": {"text/html"}}
	return op
}

// One budget bounds the sends of the SDK, our retries and our fallbacks together.
func TestRetry_BudgetBoundsAllSends(t *testing.T) {
	t.Parallel()
	busy := []fakellm.Op{refusal(503)}
	slow := []fakellm.Op{fakellm.Sleep(10 * time.Second), refusal(503)}
	lost := answer(fakellm.Bytes(role), fakellm.Fin())
	price := provider.Price{Output: 1e6 / 100} // 100 output tokens: one dollar
	body := strings.Replace(chatBody, `"stream"`, `"max_tokens":100,"stream"`, 1)
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name     string
			budget   buffer.Budget // Since counts back from now
			price    provider.Price
			primary  []fakellm.Op
			cheap    bool // the fallback costs next to nothing
			sends    []string
			complete bool
		}{
			{name: "one attempt", budget: buffer.Budget{Attempts: 1}, primary: busy, sends: []string{"primary"}},
			{name: "three attempts", budget: buffer.Budget{Attempts: 3}, primary: busy, sends: []string{"primary", "primary", "primary"}},
			{name: "two were the SDK's", budget: buffer.Budget{Attempts: 3, Spent: 2}, primary: busy, sends: []string{"primary"}},
			{name: "more than all were the SDK's", budget: buffer.Budget{Attempts: 3, Spent: 9}, primary: busy, sends: []string{"primary"}},
			{name: "elapsed", budget: buffer.Budget{Attempts: 9, Elapsed: 9 * time.Second}, primary: slow, sends: []string{"primary"}},
			{name: "elapsed within the second", budget: buffer.Budget{Attempts: 9, Elapsed: 15 * time.Second}, primary: slow, sends: []string{"primary", "primary"}},
			{name: "elapsed, a hint beyond it", budget: buffer.Budget{Attempts: 9, Elapsed: 5 * time.Second}, primary: []fakellm.Op{refusal(429, "Retry-After", "6")}, sends: []string{"primary", "fallback"}, complete: true},
			{name: "cost of what may be billed", budget: buffer.Budget{Attempts: 9, CostUSD: 1.5}, price: price, primary: lost, sends: []string{"primary"}},
			{name: "cost, a cheap fallback", budget: buffer.Budget{Attempts: 9, CostUSD: 1.5}, price: price, primary: lost, cheap: true, sends: []string{"primary", "fallback"}, complete: true},
			{name: "cost, nothing was billed", budget: buffer.Budget{Attempts: 3, CostUSD: 1.5}, price: price, primary: busy, sends: []string{"primary", "primary", "primary"}},
			{name: "cost, spent", budget: buffer.Budget{Attempts: 9, CostUSD: 0.5}, price: price, primary: lost, cheap: true, sends: []string{"primary"}},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.primary)
			r.fake.Script("fallback", whole("b "))
			c := r.call()
			c.Run.Budget = row.budget
			c.Run.Budget.Since = time.Now()
			if row.budget.Elapsed == 0 {
				c.Run.Budget.Elapsed = time.Hour
			}
			c.Send.Body = []byte(body)
			c.Route.Price = row.price
			f := r.approved("fallback")
			if !row.cheap {
				f.Route.Price = row.price
			}
			c.Route.Fallbacks = []provider.Fallback{f}
			run := r.do(c)
			var sends []string
			for _, q := range r.sends() {
				sends = append(sends, q.Route)
			}
			if fmt.Sprint(sends) != fmt.Sprint(row.sends) || (run.State == buffer.Completed) != row.complete {
				r.Errorf("run is %s %q, sent to %v; want %v", run.State, run.Reason, sends, row.sends)
			}
			if len(run.Attempts) != len(row.sends) {
				r.Errorf("ledger: %+v", entries(run))
			}
			r.wantSends(len(row.sends))
		}
	})
}

// The seed of the decision: the provider asks for a minute, eight seconds are left, an approved
// fallback takes two.
func TestRetry_FallbackWhereTheWaitDoesNotFit(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", []fakellm.Op{refusal(429, "Retry-After", "60")})
		r.fake.Script("fallback", whole("b "))
		c := r.call()
		c.Run.Budget.Elapsed = 8 * time.Second
		f := r.approved("fallback")
		f.Route.Expected = 2 * time.Second
		c.Route.Fallbacks = []provider.Fallback{f}
		run := r.do(c)
		r.wantState(run, buffer.Completed, "")
		r.wantLedger(run,
			entry{"primary", policy.Rate, policy.Fallback, policy.WasRefused, policy.BilledNo},
			entry{"fallback", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
		if got := run.Ended.Sub(run.Created); got != 0 {
			r.Errorf("the run took %s, want no wait at all", got)
		}
	})
}

// What the provider may have done already is done again only where that is harmless.
func TestRetry_UnknownOutcomeIsRepeatedOnlyIfReadOnly(t *testing.T) {
	outcomes := []struct {
		name    string
		answer  []fakellm.Op
		unknown bool
	}{
		{"silence", []fakellm.Op{hang}, true},
		{"a head and silence", answer(hang), true},
		{"closed", []fakellm.Op{fakellm.Fin()}, true},
		{"reset before content", answer(fakellm.Bytes(role), fakellm.RST()), true},
		{"502", []fakellm.Op{refusal(502)}, true},
		{"504", []fakellm.Op{refusal(504)}, true},
		{"408", []fakellm.Op{refusal(408)}, true},
		{"an overload in the stream", answer(fakellm.Data("data: {\"error\":{\"type\":\"overloaded_error\"}}\n\n"), fakellm.Done()), true},
		{"503", []fakellm.Op{refusal(503)}, false},
		{"529", []fakellm.Op{refusal(529)}, false},
		{"429", []fakellm.Op{refusal(429)}, false},
		{"522", []fakellm.Op{refusal(522)}, false},
		{"a rate limit in the stream", answer(fakellm.Data("data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n"), fakellm.Done()), false},
	}
	for _, kind := range []policy.Kind{policy.ReadOnly, policy.ServerTools, policy.External} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				for i, row := range outcomes {
					r.begin(row.name)
					name := fmt.Sprint("route", i)
					r.fake.Script(name, row.answer, whole("a "))
					r.fake.Script("fallback", whole("b "))
					c := r.callTo(name)
					c.Run.Kind = kind
					c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
					run := r.do(c)
					sent := len(r.sends())
					once := row.unknown && kind != policy.ReadOnly
					switch {
					case sent != len(run.Attempts):
						r.Errorf("%d requests, %d rows", sent, len(run.Attempts))
					case once && (run.State != buffer.Failed || sent != 1):
						r.Errorf("run is %s %q: %+v", run.State, run.Reason, entries(run))
					case !once && (run.State != buffer.Completed || sent != 2):
						r.Errorf("run is %s %q: %+v", run.State, run.Reason, entries(run))
					}
				}
			})
		})
	}
}

// A tool that the provider runs has begun: the call is never made again.
func TestRetry_NeverAfterAHostedTool(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name    string
			dialect provider.Dialect
			events  []string
		}{
			{"anthropic", provider.Anthropic, []string{
				"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"content\":[]}}\n\n",
				"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}}\n\n",
			}},
			{"responses", provider.OpenAIResponses, []string{
				"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\"}}\n\n",
				"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"id\":\"ws\",\"type\":\"web_search_call\",\"status\":\"in_progress\"}}\n\n",
			}},
		} {
			for _, end := range []fakellm.Op{fakellm.RST(), fakellm.End(), hang} {
				r.begin(row.name + ", " + end.Kind)
				var steps []fakellm.Op
				for _, e := range row.events {
					steps = append(steps, fakellm.Data(e))
				}
				r.fake.Script("primary", answer(append(steps, end)...), whole("done twice"))
				r.fake.Script("fallback", whole("done twice"))
				c := r.call()
				c.Run.Dialect = row.dialect
				c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
				run := r.do(c)
				if run.State != buffer.Interrupted || run.Head != 2 {
					r.Errorf("run is %s %q with head %d", run.State, run.Reason, run.Head)
				}
				r.wantLedger(run, entry{"primary", policy.Transient, policy.Interrupt, policy.SentUnknown, policy.BilledYes})
				r.wantSends(1)
			}
		}
	})
}
