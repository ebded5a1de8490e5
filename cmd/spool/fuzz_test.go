package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzConfig: a file is settings that hold, or is refused with an error.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "listen: 127.0.0.1:0\n", "limits: {body: 1, write: 3s, window: -1}\n", "limits: {body: -1}", "grace: 5", "ttl: 1h30m", "- a", "a: &a [*a]", "a: &a {b: *a}",
		"providers:\n  mine: {base_url: http://x, dialect: openai_chat, clocks: {total: 1s}, price: {input: .nan}}\n",
		"providers:\n  openai:\n    fallbacks: [{provider: openrouter, models: {a: b}}]\n", "providers: {runs: {base_url: http://x}}",
		"auth: {keys: {agent: a-key-of-sixteen-or-more}}", "auth: {keys: {agent: short}}", "cors: {origins: ['*', 'https://a.example']}", "tls: {cert: a}", "\x00", "listen: !!binary aGk=",
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := (&serveCmd{Config: path}).load()
		if err != nil {
			if strings.Contains(oneLine(err), "\n") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		routes, err := set.routes()
		if err != nil || len(routes) < len(builtIn) {
			t.Fatalf("%d routes, %v", len(routes), err)
		}
		for name, r := range routes {
			if r.BaseURL == nil || r.BaseURL.Host == "" || r.BaseURL.User != nil || strings.ContainsAny(name, "/?#% ") {
				t.Fatalf("%q goes to %v", name, r.BaseURL)
			}
		}
		if set.TTL <= 0 || set.Grace < 0 || set.Limits.Body < 0 {
			t.Fatalf("%+v", set)
		}
	})
}

// FuzzProviderFlag: NAME[:DIALECT]=BASE_URL, or an error.
func FuzzProviderFlag(f *testing.F) {
	for _, text := range []string{"", "=", "a=http://x", "a:anthropic=http://x", "a:b:c=http://x=y", ":=", "a=http://u:p@x", "a/b=http://x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, p, err := parseProvider(text)
		if err == nil && (name == "" || !strings.HasSuffix(text, "="+p.BaseURL)) {
			t.Fatalf("%q is %q %+v", text, name, p)
		}
	})
}
