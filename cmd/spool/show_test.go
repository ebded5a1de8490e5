package main

import (
	"strings"
	"testing"

	"github.com/spool-dev/spool/api/wire"
)

// A model's name and a caller's words are anybody's: what is shown of them steers no terminal.
func TestShow_SteersNoTerminal(t *testing.T) {
	const evil = "m\x1b[2J\x07\r\n\u009b2J"
	var out strings.Builder
	show(&out, shown{Run: wire.Run{
		ID: "01", Model: evil, Method: "POST", Path: evil, Operation: evil, Notes: []string{evil},
		Attempts: []wire.Attempt{{N: 1, Model: evil, Why: evil}},
	}})
	if i := strings.IndexAny(out.String(), "\x1b\x07\r\u009b"); i >= 0 {
		t.Errorf("it writes %q", out.String()[i:])
	}
}
