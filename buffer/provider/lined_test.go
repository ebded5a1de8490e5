package provider

import "testing"

func TestLined(t *testing.T) {
	for text, want := range map[string]bool{
		"":                     false,
		"\n\n":                 false, // no caller gives it, and it must not panic
		" \n{}":                false,
		"{}":                   false, // nothing follows yet
		"{\n\"a\": 1}":         false,
		"[{}]\n{}":             false,
		"{\"a\": }\n{}":        false,
		"{\"a\": 1}\n":         false,
		"{\"a\": 1}\n{":        true,
		"{\"a\": 1}\r\n{\"b\"": true,
	} {
		if got := lined(text); got != want {
			t.Errorf("lined(%q) is %t", text, got)
		}
	}
}
