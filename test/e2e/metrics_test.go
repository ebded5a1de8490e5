package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spool-dev/spool/test/rig"
)

// Every metric that is served is in docs/operations.md, and every one that stands there is served.
func TestMetrics_AreTheDocumentedOnes(t *testing.T) {
	served := rig.New(t, rig.Options{}).Figures()
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	got := names(regexp.MustCompile(`(?m)^# TYPE (spool_\w+) `), served)
	want := names(regexp.MustCompile("`(spool_[a-z_]+)`"), string(docs))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md and /metrics differ:\n%s", diff)
	}
}

// names are what the pattern's group finds, each once.
func names(pattern *regexp.Regexp, text string) []string {
	all := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return slices.Sorted(maps.Keys(all))
}
