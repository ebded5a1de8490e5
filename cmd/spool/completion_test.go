package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What bash offers, asked of bash itself.
func TestCompletion_InBash(t *testing.T) {
	var script, stderr strings.Builder
	if code := run([]string{"completion", "bash"}, &script, &stderr); code != 0 {
		t.Fatal(code, stderr.String())
	}
	for name, test := range map[string]struct {
		line       string // the last word is the one that is completed
		want, none []string
	}{
		"a command":          {"spool ta", []string{"tail"}, []string{"runs", "ack"}},
		"every command":      {"spool ", []string{"serve", "runs", "doctor", "completion"}, []string{"--json"}},
		"a flag":             {"spool tail --", []string{"--from", "--text", "--raw", "--json"}, []string{"--limit", "serve"}},
		"a begun flag":       {"spool serve --li", []string{"--listen"}, []string{"--data"}},
		"a value of a flag":  {"spool runs --state c", []string{"completed", "cancelled"}, []string{"failed"}},
		"an argument":        {"spool completion ", []string{"bash", "zsh", "fish"}, []string{"serve"}},
		"a command's own":    {"spool config ", []string{"check", "reference"}, []string{"runs"}},
		"a file of its own":  {"spool config check serve.", []string{"serve.go"}, []string{"reference"}},
		"no value is known":  {"spool runs --limit ", nil, []string{"--limit", "runs"}},
		"a file":             {"spool check com", []string{"completion_test.go"}, []string{"compact"}},
		"a file of a flag":   {"spool serve --config serve.", []string{"serve.go"}, []string{"--config"}},
		"not of another one": {"spool version --", []string{"--json"}, []string{"--data", "--config"}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := script.String() + `
COMP_WORDS=("${@}"); COMP_CWORD=$(($# - 1)); _spool; printf '%s\n' "${COMPREPLY[@]}"`
			words := strings.Split(test.line, " ")
			out, err := exec.CommandContext(t.Context(), "bash", append([]string{"-uc", ask, "bash"}, words...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			offered := strings.Fields(string(out))
			for _, word := range test.want {
				if !slices.Contains(offered, word) {
					t.Errorf("%q lacks %s", offered, word)
				}
			}
			for _, word := range test.none {
				if slices.Contains(offered, word) {
					t.Errorf("%q has %s", offered, word)
				}
			}
		})
	}
}
