package e2e

import (
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

const (
	homePage    = "https://app.example"
	foreignPage = "https://evil.example"
)

func TestCORS_OnlyConfiguredOriginsRead(t *testing.T) {
	g := rig.New(t, rig.Options{Origins: []string{homePage}, Plain: true})
	id := chatted(t, g)
	for _, path := range []string{"/runs/" + id, "/runs/" + id + "/events", "/runs/" + id + "/resume", "/runs/01JZZZZZZZ0000000000000009", "/nothing", "/openai/v1/models"} {
		a := g.Do("GET", path, "", "Origin", homePage)
		exposed := strings.ToLower(a.Header.Get("Access-Control-Expose-Headers"))
		if a.Header.Get("Access-Control-Allow-Origin") != homePage {
			t.Errorf("%s: allowed %q", path, a.Header.Get("Access-Control-Allow-Origin"))
		}
		for _, name := range []string{"x-buffer-run-id", "x-buffer-status", "x-buffer-from", "x-buffer-next", "x-buffer-attempts", "x-buffer-token", "location", "retry-after", "x-should-retry", "request-id", "x-request-id"} {
			if !strings.Contains(exposed, name) {
				t.Errorf("%s: %s is not exposed: %s", path, name, exposed)
			}
		}
		if !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Origin") {
			t.Error(path, "does not vary by origin")
		}
		if a := g.Do("GET", path, "", "Origin", foreignPage); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %s may read", path, foreignPage)
		}
	}
}

func TestCORS_Preflights(t *testing.T) {
	g := rig.New(t, rig.Options{Origins: []string{homePage}, Plain: true})
	ask := func(origin, method, headers string) rig.Answer {
		return g.Do("OPTIONS", "/openai/v1/chat/completions", "", "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
	}
	for _, headers := range []string{
		"last-event-id", "authorization", "idempotency-key", "authorization,content-type,idempotency-key,x-buffer-mint-token,x-buffer-run-id,x-buffer-ttl",
		"authorization,content-type,openai-organization,openai-project,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-retry-count,x-stainless-timeout",
		"anthropic-beta,anthropic-dangerous-direct-browser-access,anthropic-version,content-type,x-api-key,x-stainless-helper-method",
		"content-type,x-goog-api-client,x-goog-api-key", "http-referer,x-title", "api-key,x-providers-own",
	} {
		a := ask(homePage, "POST", headers)
		if a.Status != 204 || a.Header.Get("Access-Control-Allow-Origin") != homePage || a.Header.Get("Access-Control-Allow-Headers") != headers {
			t.Errorf("%s: %d %v", headers, a.Status, a.Header)
		}
	}
	for _, a := range []rig.Answer{ask(foreignPage, "POST", "authorization"), ask(foreignPage, "POST", "x-api-key"), ask(homePage, "BREW", "authorization")} {
		if a.Header.Get("Access-Control-Allow-Origin") != "" || a.Header.Get("Access-Control-Allow-Headers") != "" {
			t.Error(a.Header)
		}
	}
	if n := g.Fake.Count(""); n != 0 {
		t.Errorf("%d preflights went to the provider", n)
	}
}

// The providers let every page read; whoever calls them through the buffer is not every page's.
func TestCORS_ProvidersDoNotDecide(t *testing.T) {
	for _, origins := range [][]string{nil, {homePage}} {
		g := rig.New(t, rig.Options{Origins: origins, Plain: true})
		open := map[string][]string{"Content-Type": {"application/json"}, "Access-Control-Allow-Origin": {"*"}, "Vary": {"Accept-Encoding"}}
		g.Fake.Script("primary", []fakellm.Op{{Kind: "json", Status: 200, Headers: open, Data: []byte(`{}`)}})
		for _, a := range []rig.Answer{
			g.Do("GET", "/openai/v1/models", "", "Origin", foreignPage),
			g.Do("POST", "/generic/x", "{}", "Origin", foreignPage),
		} {
			if a.Status != 200 || a.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error(a.Status, a.Header)
			}
			vary := strings.Join(a.Header.Values("Vary"), ",")
			if !strings.Contains(vary, "Accept-Encoding") || strings.Contains(vary, "Origin") != (origins != nil) {
				t.Error("it varies by", vary)
			}
		}
	}
}
