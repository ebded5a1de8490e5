package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// asking are the shells, and what asks each, behind the script, what it offers for the last of its arguments.
var asking = map[string][]string{
	"bash": {"bash", "-uc", `COMP_WORDS=("${@}"); COMP_CWORD=$(($# - 1)); _spool; printf '%s\n' "${COMPREPLY[@]}"`, "bash"},
	"zsh":  {"zsh", "-fc", `words=("${@}"); CURRENT=$#; COMP_WORDS=("${@}"); COMP_CWORD=$(($# - 1)); compgen -F _spool -- "${words[-1]}"`, "zsh"},
	"fish": {"fish", "--no-config", "-c", `complete -C "$argv"`},
}

// What a shell offers, asked of the shell itself.
func TestCompletion_InEachShell(t *testing.T) {
	for shell := range asking {
		t.Run(shell, func(t *testing.T) {
			var script, stderr strings.Builder
			if code := run([]string{"completion", shell}, &script, &stderr); code != 0 {
				t.Fatal(code, stderr.String())
			}
			t.Setenv("HOME", t.TempDir()) // where zsh and fish leave files
			offersIn(t, shell, script.String())
		})
	}
}

func offersIn(t *testing.T, shell, script string) {
	for name, test := range map[string]struct {
		line       string // the last word is the one that is completed
		want, none []string
	}{
		"a command":          {"spool ta", []string{"tail"}, []string{"runs", "ack"}},
		"every command":      {"spool ", []string{"serve", "runs", "doctor", "completion", "cluster"}, []string{"--json", "init", "check.go"}},
		"a flag":             {"spool tail --", []string{"--from", "--text", "--raw", "--json"}, []string{"--limit", "serve"}},
		"a begun flag":       {"spool serve --li", []string{"--listen"}, []string{"--data"}},
		"a value of a flag":  {"spool runs --state c", []string{"completed", "cancelled"}, []string{"failed"}},
		"an argument":        {"spool completion ", []string{"bash", "zsh", "fish"}, []string{"serve"}},
		"a command's own":    {"spool config ", []string{"check", "reference"}, []string{"runs"}},
		"a cluster's own":    {"spool cluster ", []string{"init"}, []string{"runs", "check"}},
		"flags of its own":   {"spool cluster init --", []string{"--store", "--replicas", "--shards", "--unsafe-durability", "--json"}, []string{"--data", "--limit", "init"}},
		"flags of another":   {"spool config check --", []string{"--json"}, []string{"--store", "--config", "reference"}},
		"its flags so far":   {"spool cluster init --json --rep", []string{"--replicas"}, []string{"--store", "--json"}},
		"a file of its flag": {"spool cluster init --store-ca cer", []string{"certificate.go"}, []string{"--store-ca"}},
		"no value of its":    {"spool cluster init --replicas ", nil, []string{"--replicas", "init"}},
		"a file of its own":  {"spool config check serve.", []string{"serve.go"}, []string{"reference"}},
		"no value is known":  {"spool runs --limit ", nil, []string{"--limit", "runs"}},
		"a file":             {"spool check com", []string{"completion_test.go"}, []string{"compact"}},
		"a file of a flag":   {"spool serve --config serve.", []string{"serve.go"}, []string{"--config"}},
		"not of another one": {"spool version --", []string{"--json"}, []string{"--data", "--config"}},
		"a command's name":   {"spool runs --tag serve --", []string{"--limit"}, []string{"--listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Split(test.line, " ")
			if shell == "fish" {
				words = []string{test.line}
			}
			ask := slices.Clone(asking[shell])
			at := slices.Index(ask, "-c") + slices.Index(ask, "-uc") + slices.Index(ask, "-fc") + 3 // what follows that flag
			ask[at] = script + "\n" + ask[at]
			out, err := exec.CommandContext(t.Context(), ask[0], append(ask[1:], words...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var offered []string
			for line := range strings.Lines(string(out)) {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t") // fish explains it behind a tab
				offered = append(offered, word)
			}
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
