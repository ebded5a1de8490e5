package provider

import (
	"encoding/json"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep filled looks. Deeper than that a value counts as content.
const maxDepth = 16

// view is b as a string without a copy. It is safe while the chunk is: a drain's for ever, a page's
// until it is recycled; and because the scratch that it is used on lives until the view is done with.
// What outlives the reading of a chunk is cloned.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unview is s as bytes without a copy. They must not be written.
func unview(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// maxRecursive is how long a text may be, in bytes, that gjson checks. It calls itself for each bracket
// that opens, and a text of a few megabytes of them would end the process.
const maxRecursive = 4 << 10

// valid reports whether text is JSON. A long one may not nest deeper than encoding/json allows, 10000.
func valid(text string) bool {
	if len(text) <= maxRecursive {
		return gjson.Valid(text)
	}
	return json.Valid(unview(text))
}

// filled reports whether a delta carries anything: a string that is not empty, outside the fields
// that only say what kind of thing is meant. Numbers and booleans are no content by themselves.
func filled(v gjson.Result) bool { return filledTo(v, maxDepth) }

func filledTo(v gjson.Result, depth int) (found bool) {
	if v.Type == gjson.String {
		return v.Str != ""
	}
	if v.Type != gjson.JSON {
		return false
	}
	if depth == 0 {
		return true
	}
	named := v.IsObject()
	v.ForEach(func(key, value gjson.Result) bool {
		if !named || !describes(key.Str) {
			found = filledTo(value, depth-1)
		}
		return !found
	})
	return found
}

// describes reports whether a field tells what kind of thing its object is, not what is in it.
func describes(field string) bool {
	switch field {
	case "role", "type", "id", "index", "object", "format", "status", "channel":
		return true
	}
	return false
}

// empty reports whether v has no payload at all.
func empty(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null:
		return true
	case gjson.String:
		return v.Str == ""
	case gjson.JSON:
		return strings.Trim(v.Raw, "{}[] \t\r\n") == ""
	}
	return false
}

// isError reports whether the value of a field called error tells one. Many answers carry a null.
func isError(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		return v.IsObject() || !empty(v)
	case gjson.Number:
		return v.Num != 0
	}
	return v.Type == gjson.True
}

// said is the text of a reason; empty where there is none yet.
func said(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// refusals are the reasons, in any dialect, that say that the answer was withheld or ended for what
// it says.
var refusals = []string{
	"content_filter", "content_filtered", "refusal", "guardrail", "guardrail_intervened", "safety", "sensitive",
	"recitation", "blocklist", "prohibited_content", "spii", "model_armor", "error_toxic",
	"image_safety", "image_prohibited_content", "image_recitation",
}

// refuses reports whether a finish reason is a refusal.
func refuses(reason string) bool {
	for _, r := range refusals {
		if strings.EqualFold(r, reason) {
			return true
		}
	}
	return false
}

// looksLikePage reports whether text is the beginning of an HTML or XML page. sure is false while
// there is too little of it to tell.
func looksLikePage(text string) (page, sure bool) {
	for _, start := range []string{"<!doctype", "<html", "<head", "<body", "<?xml"} {
		n := min(len(start), len(text))
		if strings.EqualFold(start[:n], text[:n]) {
			return n == len(start), n == len(start)
		}
	}
	return false, true
}
