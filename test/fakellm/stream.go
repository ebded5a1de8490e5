package fakellm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The builders of streams: each text is one delta, each element of the result one event, the whole a
// valid answer in its dialect, from the opening to the proof of its end. Ids, times and models are
// always the same.
const (
	fakeModel   = "fake-1"
	fakeCreated = 1764500000
	fakePrompt  = 9 // tokens; a delta counts as one token of output
)

// sse is one event; without a name it is a data line alone.
func sse(name, data string, args ...any) []byte {
	var b []byte
	if name != "" {
		b = fmt.Appendf(b, "event: %s\n", name)
	}
	b = append(b, "data: "...)
	b = fmt.Appendf(b, data, args...)
	return append(b, "\n\n"...)
}

// quote is the texts in one JSON string.
func quote(texts ...string) string {
	b, err := json.Marshal(strings.Join(texts, ""))
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(b)
}
