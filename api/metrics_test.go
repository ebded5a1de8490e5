package api

import (
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
)

// What repeats have saved is told in tokens and at the route's price; a route without one costs nothing
// that is known.
func TestMetrics_CountWhatIsSaved(t *testing.T) {
	m := NewMetrics()
	m.Prices(map[string]provider.Route{"dear": {Price: provider.Price{Input: 1, Output: 10}}})
	usage := &provider.Usage{InputTokens: 1_000_000, OutputTokens: 500_000}
	m.Reused(buffer.Run{Route: "dear", State: buffer.Completed, Usage: usage})
	m.Reused(buffer.Run{Route: "dear", State: buffer.Streaming}) // is counted when it ends
	m.Reused(buffer.Run{Route: "unknown", State: buffer.Completed, Usage: usage})
	m.RunEnded(buffer.Run{Route: "dear", State: buffer.Completed, Outcome: buffer.Completed, Usage: usage, Attaches: 2})
	all, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range all {
		for _, v := range f.GetMetric() {
			got[f.GetName()] += v.GetCounter().GetValue()
		}
	}
	if got["spool_dollars_saved_total"] != 3*6 || got["spool_output_tokens_saved_total"] != 4*500_000 {
		t.Errorf("$%v and %v tokens saved", got["spool_dollars_saved_total"], got["spool_output_tokens_saved_total"])
	}
}
