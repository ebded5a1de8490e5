package test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/spool-dev/spool"

// arrows says which packages of the service each one may import, directly. Imports go down: no
// package knows who listens to it.
var arrows = map[string][]string{
	"cmd/spool":        {"api", "api/client", "api/console", "api/trace", "api/wire", "buffer", "buffer/frame", "buffer/jetstream", "buffer/provider", "buffer/sqlite"},
	"api/trace":        {"buffer", "buffer/policy", "buffer/provider"},
	"api":              {"api/console", "api/wire", "resume", "buffer", "buffer/frame", "buffer/policy", "buffer/provider"},
	"api/console":      {"tail", "buffer", "buffer/provider"},
	"api/client":       {"api/wire", "buffer/frame"},
	"api/wire":         {},
	"resume":           {"tail", "buffer", "buffer/provider"},
	"tail":             {"buffer"},
	"buffer":           {"buffer/frame", "buffer/policy", "buffer/provider"},
	"buffer/frame":     {},
	"buffer/policy":    {},
	"buffer/provider":  {"buffer/frame", "buffer/policy"},
	"buffer/bell":      {},
	"buffer/jetstream": {"buffer", "buffer/bell", "buffer/policy"},
	"buffer/sqlite":    {"buffer", "buffer/bell", "buffer/frame", "buffer/policy", "buffer/provider", "migrations"},
	"migrations":       {},
	"examples":         {"api/client"},
}

func TestArrows_ImportsGoDown(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}:{{join .Imports " "}}`, module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		name := strings.TrimPrefix(path, module+"/")
		if strings.HasPrefix(name, "examples/") { // they show what users can import
			name = "examples"
		}
		if strings.HasPrefix(name, "test") || name == "buffer/storetest" {
			continue // tests may import anything
		}
		allowed, known := arrows[name]
		if !known {
			t.Errorf("package %s is not on the picture: docs/design.md and this table say where it belongs", name)
		}
		seen[name] = true
		for imported := range strings.FieldsSeq(imports) {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s: that arrow goes up or aside", name, ours)
			}
		}
	}
	for name := range arrows {
		if !seen[name] {
			t.Errorf("package %s is on the picture and not in the repository", name)
		}
	}
}
