package buffer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/test/fakellm"
)

// The fallback gets the same call with its own model, and nothing that was for the primary alone.
func TestFallback_GetsTheSameCallWithoutTheCredential(t *testing.T) {
	const body = `{ "messages":[{"role":"user","content":"model m \u00e9"}], "model" : "m","stream":true,  "temperature":1.0 , "x":{"model":"m"} }`
	secrets := http.Header{
		"Authorization":        {"Bearer secret"},
		"X-Api-Key":            {"secret"},
		"X-Goog-Api-Key":       {"secret"},
		"Api-Key":              {"secret"},
		"X-Amz-Security-Token": {"secret"},
	}
	for _, row := range []struct {
		name, key, authorization string
	}{
		{"without a key of its own", "", ""},
		{"with its own key", "own", "Bearer own"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.fake.Script("primary", []fakellm.Op{refusal(503)})
				r.fake.Script("fallback", whole("b "))
				c := r.call()
				c.Route.NoRetry = true
				c.Send.Body = []byte(body)
				c.Send.URL.RawQuery = "beta=true&key=secret"
				c.Send.Header = secrets.Clone()
				c.Send.Header.Set("Openai-Beta", "kept")
				f := r.approved("fallback")
				f.Route.Key = row.key
				f.Route.BaseURL = r.parse(r.url + "/fallback/base%2Fpath")
				c.Route.Fallbacks = []provider.Fallback{f}
				run := r.do(c)
				r.wantState(run, buffer.Completed, "")
				r.wantSends(2)
				first, second := r.sends()[0], r.sends()[1]
				if string(first.Body) != body || first.Header.Get("X-Api-Key") != "secret" {
					r.Errorf("the primary got %q with %v", first.Body, first.Header)
				}
				if want := strings.Replace(body, `"model" : "m"`, `"model" : "m2"`, 1); string(second.Body) != want {
					r.Errorf("the fallback got\n%s, want\n%s", second.Body, want)
				}
				if second.Target != "/fallback/base%2Fpath/v1/chat/completions?beta=true" {
					r.Errorf("the fallback was called at %s", second.Target)
				}
				for name, values := range second.Header {
					if strings.Contains(strings.Join(values, " "), "secret") {
						r.Errorf("the fallback got the caller's %s", name)
					}
				}
				if second.Header.Get("Openai-Beta") != "kept" || second.Header.Get("Authorization") != row.authorization {
					r.Errorf("the fallback got %v", second.Header)
				}
				if run.Attempts[0].Model != "m" || run.Attempts[1].Model != "m2" {
					r.Errorf("models in the ledger: %q, %q", run.Attempts[0].Model, run.Attempts[1].Model)
				}
			})
		})
	}
}

// A fallback that would lose something of the call is passed over for one that keeps it.
func TestFallback_IsPassedOverWhereItLosesSomething(t *testing.T) {
	t.Parallel()
	const (
		tools  = `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"f"}}]}`
		schema = `{"model":"m","stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{}}}}`
		long   = `{"model":"m","stream":true,"max_tokens":1000}`
	)
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name  string
			body  string
			lacks func(*provider.Fallback)
			used  bool
		}{
			{"tools", tools, func(f *provider.Fallback) { f.Tools = false }, false},
			{"tools that nobody asks for", chatBody, func(f *provider.Fallback) { f.Tools = false }, true},
			{"schema", schema, func(f *provider.Fallback) { f.Schema = false }, false},
			{"schema that nobody asks for", tools, func(f *provider.Fallback) { f.Schema = false }, true},
			{"context", long, func(f *provider.Fallback) { f.Context = 1000 }, false},
			{"context that is enough", long, func(f *provider.Fallback) { f.Context = 2000 }, true},
			{"region", chatBody, func(f *provider.Fallback) { f.Route.Region = "us" }, false},
			{"no region", chatBody, func(f *provider.Fallback) { f.Route.Region = "" }, false},
			{"model", chatBody, func(f *provider.Fallback) { f.Models = map[string]string{"other": "m2"} }, false},
			{"nothing", tools, func(*provider.Fallback) {}, true},
		} {
			r.begin(row.name)
			r.fake.Script("primary", []fakellm.Op{refusal(429, "Retry-After", "60")})
			r.fake.Script("first", whole("b "))
			r.fake.Script("second", whole("c "))
			first, second := r.approved("first"), r.approved("second")
			first.Route.Region, second.Route.Region = "eu", "eu"
			row.lacks(&first)

			for _, fallbacks := range [][]provider.Fallback{{first, second}, {first}} {
				c := r.call()
				c.Route.Region = "eu"
				c.Send.Body = []byte(row.body)
				c.Route.Fallbacks = fallbacks
				run := r.do(c)
				want := "first"
				switch {
				case !row.used && len(fallbacks) == 1:
					want = "primary"
					r.wantState(run, buffer.Failed, buffer.Refused)
				case !row.used:
					want = "second"
					fallthrough
				default:
					r.wantState(run, buffer.Completed, "")
				}
				if last := run.Attempts[len(run.Attempts)-1]; last.Route != want || len(run.Attempts) > 2 {
					r.Errorf("ledger: %+v, want the last send to %s", entries(run), want)
				}
			}
		}
	})
}

// Which failures may be answered by another route.
func TestFallback_IsNotForEveryFailure(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name     string
			refusal  fakellm.Op
			ownQuota bool
			used     bool
		}{
			{"quota of the same account", refusalOf(429, `{"error":{"code":"insufficient_quota"}}`), false, false},
			{"quota of its own", refusalOf(429, `{"error":{"code":"insufficient_quota"}}`), true, true},
			{"policy", refusalOf(400, `{"error":{"code":"content_policy_violation"}}`), true, false},
			{"request", refusal(400), true, false},
			{"auth", refusal(401), true, false},
			{"unknown", refusal(500), true, false},
			{"overload", refusal(529, "X-Should-Retry", "false"), true, true},
		} {
			r.begin(row.name)
			r.fake.Script("primary", []fakellm.Op{row.refusal})
			r.fake.Script("fallback", whole("b "))
			c := r.call()
			f := r.approved("fallback")
			f.OwnQuota = row.ownQuota
			c.Route.Fallbacks = []provider.Fallback{f}
			run := r.do(c)
			if (run.State == buffer.Completed) != row.used {
				r.Errorf("run is %s: %+v", run.State, entries(run))
			}
			for _, q := range r.sends() {
				if q.Route == "fallback" && !row.used {
					r.Errorf("the fallback was asked")
				}
			}
		}
	})
}

// A silent route is left for the fallback at once, before it is asked again.
func TestFallback_ComesFirstWhereTheRouteIsSilent(t *testing.T) {
	for _, ops := range [][]fakellm.Op{{hang}, answer(beats(1000, 15*time.Second, comment))} {
		bubble(t, func(r *rig) {
			r.fake.Script("primary", ops)
			r.fake.Script("fallback", whole("b "))
			c := r.call()
			c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
			run := r.do(c)
			r.wantState(run, buffer.Completed, "")
			r.wantLedger(run,
				entry{"primary", policy.Transient, policy.Fallback, policy.SentUnknown, policy.BilledUnknown},
				entry{"fallback", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes})
			r.wantSends(2)
		})
	}
}

// A failed run answers with what the primary said last, whatever its fallbacks said after.
func TestFallback_FailureIsToldInThePrimarysWords(t *testing.T) {
	t.Parallel()
	inBand := func(code string) []fakellm.Op {
		return answer(fakellm.Bytes(role), fakellm.Data("data: {\"error\":{\"code\":\""+code+"\",\"message\":\"no\"}}\n\n"), fakellm.Done())
	}
	const body = `{"error":{"message":"the primary's"}}`
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name    string
			primary [][]fakellm.Op
			status  int
			reason  buffer.Reason
			body    string
			hint    string
		}{
			{"its status, body and hint", [][]fakellm.Op{{refusalOf(429, body, "Retry-After", "60")}}, 429, buffer.Refused, body, "60"},
			{"its last one", [][]fakellm.Op{{refusal(502)}, {refusalOf(429, body, "Retry-After", "60")}}, 429, buffer.Refused, body, "60"},
			{"silence", [][]fakellm.Op{{hang}}, 504, buffer.Silent, "", ""},
			{"a lost connection", [][]fakellm.Op{{fakellm.Fin()}}, 502, buffer.Reset, "", ""},
			{"an overload inside a 200", [][]fakellm.Op{inBand("overloaded_error")}, 529, buffer.Refused, `{"error":{"code":"overloaded_error","message":"no"}}`, ""},
			{"a rate limit inside a 200", [][]fakellm.Op{inBand("rate_limit_exceeded")}, 429, buffer.Refused, `{"error":{"code":"rate_limit_exceeded","message":"no"}}`, ""},
			{"another error inside a 200", [][]fakellm.Op{inBand("server_error")}, 502, buffer.Refused, `{"error":{"code":"server_error","message":"no"}}`, ""},
		} {
			r.begin(row.name)
			r.fake.Script("primary", row.primary...)
			r.fake.Script("fallback", []fakellm.Op{refusalOf(400, `{"error":{"message":"the fallback's"}}`, "X-From", "fallback")})
			c := r.call()
			c.Run.Budget.Attempts = len(row.primary) + 1
			c.Route.NoRetry = len(row.primary) == 1
			c.Route.Fallbacks = []provider.Fallback{r.approved("fallback")}
			run := r.do(c)
			r.wantSends(len(row.primary) + 1)
			if last := run.Attempts[len(run.Attempts)-1]; last.Route != "fallback" {
				r.Errorf("the fallback was not asked: %+v", entries(run))
			}
			r.wantState(run, buffer.Failed, row.reason)
			if got := string(r.bytes(run)); run.Status != row.status || got != row.body || run.Header.Get("Retry-After") != row.hint || run.Header.Get("X-From") != "" {
				r.Errorf("answered with %d %q %v", run.Status, got, run.Header)
			}
		}
	})
}
