package sdk

import (
	"bytes"
	"encoding/json"
	"testing"
)

// leftAndRepeatedCalls is what js/calls.mjs does: an SDK that leaves stops a run that wants to be stopped
// then, and a key that it is given by its own means makes one run of two calls.
func leftAndRepeatedCalls(t *testing.T, r *rig) {
	want := make(map[string]string)
	for _, name := range []string{"openai", "anthropic", "genai", "ai"} {
		want[name+" cancels"] = `"cancelled"`
		want[name+" repeats"] = `{"state":"completed","saved":1}`
	}
	wantTold(t, runNode(t, "js", "calls.mjs", r.spool), want)
}

// wantTold compares what a program tells with what it should: a JSON value by name, one a line.
func wantTold(t *testing.T, out []byte, want map[string]string) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var told struct {
			Name string          `json:"name"`
			Got  json.RawMessage `json:"got"`
		}
		if err := json.Unmarshal(line, &told); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if got := string(told.Got); got != want[told.Name] {
			t.Errorf("%s: %s, want %s", told.Name, got, want[told.Name])
		}
		delete(want, told.Name)
	}
	for name := range want {
		t.Errorf("%s: nothing", name)
	}
}
