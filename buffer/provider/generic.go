package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readGeneric reads an event of a protocol that is not known, or one that its protocol does not
// name. Errors and keep-alives look alike everywhere; anything else with a payload is content.
func readGeneric(r *Reader, name, data string) Mark {
	v := gjson.Parse(data)
	if empty(v) {
		return Mark{}
	}
	if v.IsObject() {
		switch said(v.Get("type")) {
		case "ping", "keepalive":
			return Mark{Comment: true}
		case "error":
			return r.fail(data)
		}
		if isError(v.Get("error")) {
			return r.fail(data)
		}
		if strings.Contains(data, `"usage"`) {
			r.meterAnywhere(v)
		}
		r.identify(v.Get("id"), v.Get("model"))
	}
	return r.unknown()
}

// meterAnywhere looks for figures where protocols put them.
func (r *Reader) meterAnywhere(v gjson.Result) {
	for _, path := range []string{"usage", "delta.usage", "response.usage", "message.usage", "data.usage"} {
		r.meter(v.Get(path))
	}
}
