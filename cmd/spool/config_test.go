package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// mistakesIn are what config check finds in a file, a line for each.
func mistakesIn(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&serveCmd{Config: path}).load()
	if err == nil {
		return nil
	}
	return linesOf(err)
}

// Every value that cannot be is told by its whole key, also when it is one of many.
func TestConfig_MistakesAreToldByTheirWholeKeys(t *testing.T) {
	for text, want := range map[string][]string{
		"listen: nonsense":                              {"listen"},
		"listen: 127.0.0.1:99999":                       {"listen"},
		"{listen: nonsense, ttl: 0s, grace: -1s}":       {"grace", "listen", "ttl"},
		"{sync: fast, log_level: loud}":                 {"log_level", "sync"},
		"secret: x":                                     {"secret"},
		"previous_secret: 0123456789012345678901234567": {"previous_secret"},
		"tls: {cert: a.pem}":                            {"tls.key"},
		"tls: {key: a.pem}":                             {"tls.cert"},
		"admin: {key: short}":                           {"admin.key"},
		"admin: {listen: nonsense}":                     {"admin.listen"},
		"admin: {listen: '0.0.0.0:8788'}":               {"admin.listen"},
		"admin: {listen: '127.0.0.1:8788', tls: true, hosts: [good, 'http://bad']}": {"admin.hosts[1]", "admin.tls"},
		"admin: {key: short, listen: nonsense}":                                     {"admin.key", "admin.listen"},
		"telemetry: {otlp_endpoint: x, sampling: 2, headers: {'a b': c}}":           {"telemetry.headers.a b", "telemetry.otlp_endpoint", "telemetry.sampling"},
		"store: {url: x}": {"secret", "store.url"},
		"{store: {url: 'nats://x:1', name: a b, cert: c, monitors: ['http://x', y]}, secret: a-secret-of-all-nodes-of-the-cluster}": {
			"store.key", "store.monitors[1]", "store.name"},
		"{store: {url: 'nats://x:1', key: c}, secret: a-secret-of-all-nodes-of-the-cluster}": {"store.cert"},
		"cors: {origins: ['https://a.example', nonsense, 'x/y']}":                            {"cors.origins[1]", "cors.origins[2]"},
		"auth: {keys: {a: short, b: a-key-of-sixteen-or-more, c: a-key-of-sixteen-or-more}}": {"auth.keys.a", "auth.keys.c"},
		"encryption: {keys: [{name: 'a b', key: x}, {name: k, key: x}, {name: l, env: SPOOL_NO_SUCH_KEY}, {name: m, file: missing}, {name: n}]}": {
			"encryption.keys[0].name", "encryption.keys[1].key", "encryption.keys[2].env", "encryption.keys[3].file", "encryption.keys[4].key"},
		"{limits: {body: -1, bodies: 5, hold: -1s}, callers: {live: -1}, queue: {wait: -1s}}": {
			"callers.live", "limits.body", "limits.hold", "queue.wait"},
		"limits: {body: 10, bodies: 5}":             {"limits.bodies"},
		"limits: {chunk: 10, pages: 5}":             {"limits.pages"},
		"limits: {pages: 5}":                        {"limits.pages"},
		"providers: {runs: {base_url: 'http://x'}}": {"providers.runs"},
		"providers: {a/b: {base_url: 'http://x'}}":  {"providers.a/b"},
		"providers: {mine: {base_url: x, dialect: klingon, concurrency: -1, expected: -1s, price: {input: -1, output: .nan}}, other: {}}": {
			"providers.mine.base_url", "providers.mine.concurrency", "providers.mine.dialect", "providers.mine.expected", "providers.mine.price.input", "providers.mine.price.output",
			"providers.other.base_url"},
		"providers: {openai: {fallbacks: [{provider: openrouter, models: {a: b}}, {provider: nobody}, {provider: anthropic, models: {a: ''}, context: -1}]}, gemini: {fallbacks: [{provider: gemini, models: {a: b}}]}}": {
			"providers.gemini.fallbacks[0].provider", "providers.openai.fallbacks[1].models", "providers.openai.fallbacks[1].provider",
			"providers.openai.fallbacks[2].context", "providers.openai.fallbacks[2].models.a", "providers.openai.fallbacks[2].provider"},
	} {
		var keys []string
		for _, line := range mistakesIn(t, text) {
			key, _, _ := strings.Cut(line, ": ")
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("%s:\n%s\nwant the keys %q", text, strings.Join(mistakesIn(t, text), "\n"), want)
		}
	}
}

// A value of another kind than the key's is told by the whole key, whichever it is.
func TestConfig_AnotherKindIsToldByItsWholeKey(t *testing.T) {
	for key, text := range ofAnotherKind(reflect.TypeFor[settings](), "", "") {
		lines := mistakesIn(t, text)
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, key+": must be ") }) {
			t.Errorf("%q is told as %q, want %s", text, lines, key)
		}
	}
}

// ofAnotherKind are files by the key whose value does not fit in them: each key that there is.
func ofAnotherKind(t reflect.Type, key, before string) map[string]string {
	all := map[string]string{}
	merge := func(of reflect.Type, key, before string) {
		maps.Copy(all, ofAnotherKind(of, key, before))
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	indent := strings.Repeat("  ", strings.Count(before, "\n"))
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			name := f.Tag.Get("koanf")
			merge(f.Type, strings.TrimPrefix(key+"."+name, "."), before+indent+name+":\n")
		}
		return all
	case reflect.Map:
		merge(t.Elem(), key+".mine", before+indent+"mine:\n")
		return all
	case reflect.Slice:
		merge(t.Elem(), key+"[0]", before+indent+"-\n")
	}
	all[key] = before + indent + "a: b\n"
	return all
}
