package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readAnthropic reads an event of Anthropic's messages, or a whole message.
func readAnthropic(r *Reader, name, data string) Mark {
	v := gjson.Parse(data)
	kind := said(v.Get("type"))
	if kind == "" {
		kind = name
	}
	switch kind {
	case "content_block_delta":
		return r.progress(filled(v.Get("delta")), false)
	case "content_block_start":
		return r.progress(r.readBlock(v.Get("content_block")), false)
	case "content_block_stop":
		return r.progress(false, false)
	case "message_start":
		message := v.Get("message")
		r.identify(message.Get("id"), message.Get("model"))
		r.meter(message.Get("usage"))
		return r.progress(false, false)
	case "message_delta":
		r.meter(v.Get("usage"))
		reason := said(v.Get("delta.stop_reason"))
		r.refused(reason)
		return r.progress(false, reason != "")
	case "message_stop":
		r.progress(false, true)
		return r.conclude()
	case "message":
		return r.readWholeMessage(v)
	case "ping":
		return Mark{Comment: true}
	}
	return readGeneric(r, name, data)
}

// readBlock reports whether the start of a content block is content by itself: a tool's that the
// provider runs, one that comes whole with its start, one of a kind that is not known.
func (r *Reader) readBlock(b gjson.Result) bool {
	switch kind := said(b.Get("type")); {
	case kind == "tool_use":
		return false
	case kind == "text", kind == "thinking", kind == "redacted_thinking":
		return filled(b)
	case strings.HasSuffix(kind, "_tool_use"), strings.HasSuffix(kind, "_tool_result"):
		r.tool = true
	}
	return true
}

func (r *Reader) readWholeMessage(v gjson.Result) Mark {
	r.identify(v.Get("id"), v.Get("model"))
	r.meter(v.Get("usage"))
	v.Get("content").ForEach(func(_, b gjson.Result) bool {
		r.readBlock(b)
		return true
	})
	reason := said(v.Get("stop_reason"))
	r.refused(reason)
	return r.progress(true, reason != "")
}
