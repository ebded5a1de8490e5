package api

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
)

// FuzzHeaders: whatever steers a call is within its bounds, or is refused with an error that names
// the header; and says nothing where it is not there.
func FuzzHeaders(f *testing.F) {
	for _, v := range []string{
		"", "key", `"key"`, `"`, `""`, "k\x00", "é", strings.Repeat("k", 256), "01JZZZZZZZ0000000000000009", "01jzzzzzzz0000000000000009", "00000000000000000000000000",
		"cancel", "cancel-after=30s", "cancel-after=-1s", "30m", "1e9h", "a=b", "a=b,c=d", "a=b,,", "=b", strings.Repeat("a=b,", 9) + "a=b",
		"attempts=3;elapsed=300s;cost=0.05", "attempts=0", "cost=NaN", "cost=-1", "cost=+Inf", "elapsed=9999999h", "attempts=1;attempts=200",
		"off", "1ns", "external", `{"turn_id":"a"}`, `{"turn_id":{"turn_id":"a"}}`, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	} {
		for i := range steering {
			f.Add(uint8(i), v)
		}
	}
	limits := Limits{}.withDefaults()
	f.Fuzz(func(t *testing.T, which uint8, v string) {
		name := steering[int(which)%len(steering)]
		h := http.Header{name: {v}}
		var run buffer.Run
		err := steer(h, &run, limits)
		_, beatErr := heartbeat(h, limits.Heartbeat)
		ttl, mintErr := mintTTL(h)
		if err := errors.Join(err, beatErr, mintErr); err != nil {
			if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n\n") {
				t.Fatalf("%s: %q is refused with %v", name, v, err)
			}
			return
		}
		b := run.Budget
		if b.Attempts < 1 || b.Attempts > maxAttempts || b.Elapsed <= 0 || !(b.CostUSD >= 0 && b.CostUSD < maxCost) {
			t.Fatalf("budget %+v", b)
		}
		if run.TTL <= 0 || run.TTL > limits.MaxTTL || ttl < 0 || ttl > MaxTokenTTL || run.OnDisconnect.After < 0 {
			t.Fatalf("times of %+v", run)
		}
		if !printable(run.Key, maxKey) || !printable(run.Operation, maxKey) || len(run.Tags) > maxTags {
			t.Fatalf("key %q, operation %q, %d tags", run.Key, run.Operation, len(run.Tags))
		}
		for n, tag := range run.Tags {
			if n == "" || !printable(n, maxTagName) || !printable(tag, maxTag) {
				t.Fatalf("tag %q=%q", n, tag)
			}
		}
		if r := retryOf(h); r.Count < 0 || r.Count > maxRetryCount || !printable(r.Turn, maxKey) {
			t.Fatalf("retry %+v", r)
		}
	})
}

// steering are the headers that are read for what they say, and one that goes through.
var steering = []string{
	wire.HeaderKey, wire.HeaderRunID, wire.HeaderKind, wire.HeaderOnDisconnect, wire.HeaderTTL, wire.HeaderTag, wire.HeaderBudget,
	wire.HeaderOperation, wire.HeaderHeartbeat, wire.HeaderMintToken, "X-Stainless-Retry-Count", "X-Codex-Turn-Metadata", "Traceparent",
}

// FuzzJoin: no path leaves the base URL, as a server would read it that undoes one escape or two kinds
// of slash; and none changes where the request goes.
func FuzzJoin(f *testing.F) {
	for _, p := range []string{"/v1/models", "/..", "/v1/%2e%2e/x", "/..%2fx", "/..%5cx", `/..\x`, "//evil/x", "/@evil/", "/:80/", "/%", "/%00", "/%252e%252e/", "/a?b", "/\xff", "/.%2e/", "/%2f..%2f"} {
		f.Add(p, "key=a&b=..")
	}
	base := &url.URL{Scheme: "https", Host: "provider:1", Path: "/base"}
	f.Fuzz(func(t *testing.T, escaped, query string) {
		if !strings.HasPrefix(escaped, "/") {
			return // a route's rest begins so
		}
		u, err := join(base, escaped, query)
		if err != nil {
			if f := asFault(err); f.code != wire.CodeBadRequest {
				t.Fatal(err)
			}
			return
		}
		plain := strings.ReplaceAll(u.Path, `\`, "/")
		if clean := path.Clean(plain); clean != "/base" && !strings.HasPrefix(clean, "/base/") {
			t.Fatalf("%q is %q", escaped, u.Path)
		}
		if u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || !strings.HasPrefix(u.EscapedPath(), "/base/") {
			t.Fatalf("%q goes to %s", escaped, u)
		}
	})
}

// FuzzOrigin: an origin is a scheme and a host and nothing else.
func FuzzOrigin(f *testing.F) {
	for _, o := range []string{"", "https://a.example", "https://a.example/", "HTTP://A:80", "https://u@a", "null", "//a", "https://a?b", "https://a#b", "https://[::1]:1"} {
		f.Add(o)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, ok := originOf(text)
		if !ok || o == "" {
			return
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || len(o) > 3*len(text)+1 {
			t.Fatalf("%q is the origin %q", text, o)
		}
		if again, ok := originOf(o); !ok || again != o {
			t.Fatalf("%q is read as %q the second time", o, again)
		}
	})
}

// FuzzTokenTTL: a token's life is above 0 and bounded.
func FuzzTokenTTL(f *testing.F) {
	for _, v := range []string{"", "10m", "0", "-1s", "1e3h", "99999999h", "1ns", "10"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := tokenTTL(text); err == nil && (d <= 0 || d > 24*time.Hour) {
			t.Fatalf("%q is %s", text, d)
		}
	})
}
