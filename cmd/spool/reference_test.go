package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const deploy = "../../deploy"

// The file in the repository is what the source says.
func TestReference_IsNotStale(t *testing.T) {
	want, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(deploy, "spool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("deploy/spool.yaml is not what `spool config reference` prints: make reference writes it\n%s", diff)
	}
}

// Every key is explained, and every default is one: the file says what holds without it.
func TestReference_SaysWhatHoldsWithoutIt(t *testing.T) {
	text, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "# ")) == "" && strings.TrimSpace(line) != "" {
			t.Errorf("a key has no meaning: %q", line)
		}
	}
	by, without := loaded(t, text), loaded(t, "")
	yes := true
	without.RetryDedupe = &yes
	if diff := cmp.Diff(without, by, cmp.FilterValues(bothEmpty, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

// The examples in it are no mistakes either: every key is one that can be set.
func TestReference_ItsExamplesHoldWhenTheyAreFilledIn(t *testing.T) {
	text, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the example of a list stands in that of a map
		text = uncommented(text)
	}
	text = strings.NewReplacer("keys: []", "keys:", `name: ""`, "name: n", `    key: ""`, `    key: "`+strings.Repeat("1", 64)+`"`, "providers: {}\n", "providers:\n", "fallbacks: []", "fallbacks:", `base_url: ""`, "base_url: http://x", `provider: ""`, "provider: openrouter", "models: {}", "models: {a: b}").Replace(text)
	set := loaded(t, text)
	if p := set.Providers["NAME"]; p.BaseURL != "http://x" || len(p.Fallbacks) != 1 {
		t.Errorf("%+v", p)
	}
}

// uncommented takes the sign off the lines of an example, which begin with it and two spaces.
func uncommented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimLeft(line, " ")
		if rest, ok := strings.CutPrefix(bare, "#  "); ok {
			line = line[:len(line)-len(bare)] + "  " + rest
		}
		out.WriteString(line)
	}
	return out.String()
}

// What is shown of settings makes the same settings again, but for what is secret.
func TestEffective_IsAFileOfTheSameSettings(t *testing.T) {
	for _, path := range examples(t) {
		set := loadedFrom(t, path)
		text := effective(set)
		for n := 1; strings.Contains(text, redacted); n++ { // each key is another
			text = strings.Replace(text, redacted, fmt.Sprintf("change-me-change-me-change-me-%d", n), 1)
		}
		again := loaded(t, text)
		again.Secret, again.PreviousSecret, again.Admin.Key, again.Auth.Keys = set.Secret, set.PreviousSecret, set.Admin.Key, set.Auth.Keys
		for name, p := range again.Providers {
			p.Key = set.Providers[name].Key
			if len(set.Providers[name].Fallbacks) == 0 {
				p.Fallbacks = nil
			}
			if set.Providers[name].Retry == nil {
				p.Retry = nil // shown as the default that it is
			}
			again.Providers[name] = p
		}
		again.RetryDedupe = set.RetryDedupe
		if diff := cmp.Diff(set, again, cmp.FilterValues(bothEmpty, cmp.Ignore())); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// bothEmpty are lists and maps that say nothing, in either way.
func bothEmpty(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Type() == y.Type() && x.Len()+y.Len() == 0
}

func examples(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(deploy, "examples", "*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("%v, %v", paths, err)
	}
	return paths
}

// Every example is a configuration that holds.
func TestExamples_Hold(t *testing.T) {
	for _, path := range examples(t) {
		loadedFrom(t, path)
	}
}

func loadedFrom(t *testing.T, path string) settings {
	t.Helper()
	set, err := (&serveCmd{Config: path}).load()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return set
}

func loaded(t *testing.T, text string) settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadedFrom(t, path)
}
