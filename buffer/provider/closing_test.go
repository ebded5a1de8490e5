package provider

import (
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

func TestClosing_IsWhatTheLastEventLacks(t *testing.T) {
	for _, row := range []struct {
		name, last, want string
		kind             frame.Kind
	}{
		{"finished", "data: {}\n\n", "", frame.SSE},
		{"finished, CRLF", "data: {}\r\n\r\n", "", frame.SSE},
		{"finished, CR", "data: {}\r\r", "", frame.SSE},
		{"no line end", "data: {}", "\n\n", frame.SSE},
		{"no blank line", "data: {}\n", "\n", frame.SSE},
		{"no blank line, CRLF", "data: {}\r\n", "\n", frame.SSE},
		{"a line", "{}\n", "", frame.NDJSON},
		{"a line without its end", "{}", "\n", frame.NDJSON},
		{"an array", "[{}", "", frame.JSONArray},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := string(Closing(row.kind, []byte(row.last))); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
