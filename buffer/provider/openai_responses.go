package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readResponses reads an event of OpenAI's Responses, or a whole response.
func readResponses(r *Reader, name, data string) Mark {
	v := gjson.Parse(data)
	kind := said(v.Get("type"))
	if kind == "" {
		kind = name
	}
	switch kind {
	case "response.created", "response.queued", "response.in_progress":
		r.readResponse(v.Get("response"))
		return r.progress(false, false)
	case "response.completed", "response.incomplete":
		r.readResponse(v.Get("response"))
		r.progress(false, true)
		return r.conclude()
	case "response.failed":
		r.known = true
		r.readResponse(v.Get("response"))
		return r.fail(data)
	case "response.output_item.added":
		r.known = true
		return r.progress(r.readItem(v.Get("item")), false)
	case "response.content_part.added", "response.reasoning_summary_part.added":
		return r.progress(filled(v.Get("part.text")), false)
	case "response.refusal.delta", "response.refusal.done":
		r.policy = true
		return r.progress(true, false)
	}
	switch {
	case strings.HasSuffix(kind, ".delta") && strings.HasPrefix(kind, "response."):
		r.tool = r.tool || hostedEvent(kind)
		return r.progress(!empty(v.Get("delta")), false)
	case strings.HasPrefix(kind, "response."):
		r.tool = r.tool || hostedEvent(kind)
		return r.progress(true, false)
	case said(v.Get("object")) == "response":
		return r.readWholeResponse(v, data)
	}
	return readGeneric(r, name, data)
}

// readResponse takes what a snapshot of the response says besides its output.
func (r *Reader) readResponse(v gjson.Result) {
	r.identify(v.Get("id"), v.Get("model"))
	r.meter(v.Get("usage"))
	r.refused(said(v.Get("incomplete_details.reason")))
}

// readWholeResponse reads a response that came in one piece. One that runs in the background is
// whole as it is; its end is told elsewhere.
func (r *Reader) readWholeResponse(v gjson.Result, data string) Mark {
	r.readResponse(v)
	status := said(v.Get("status"))
	if status == "failed" || isError(v.Get("error")) {
		return r.fail(data)
	}
	v.Get("output").ForEach(func(_, item gjson.Result) bool {
		r.readItem(item)
		r.policy = r.policy || item.Get(`content.#(type=="refusal")`).Exists()
		return true
	})
	return r.progress(true, status == "completed" || status == "incomplete")
}

// readItem reports whether an output item is a hosted tool's, and notes that the tool is at work.
func (r *Reader) readItem(item gjson.Result) bool {
	kind := said(item.Get("type"))
	hosted := hostedCall(kind)
	switch kind {
	case "tool_search_call":
		hosted = said(item.Get("execution")) != "client"
	case "shell_call":
		hosted = said(item.Get("environment.type")) != "local"
	}
	r.tool = r.tool || hosted
	return hosted
}

// hostedCall reports whether an item of that kind is the call of a tool that the provider runs.
func hostedCall(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call", "computer_call", "local_shell_call", "apply_patch_call":
		return false
	case "mcp_list_tools":
		return true
	}
	return strings.HasSuffix(kind, "_call")
}

// hostedEvent reports whether an event speaks of a hosted tool's call, as
// response.web_search_call.searching does.
func hostedEvent(kind string) bool {
	item, _, _ := strings.Cut(strings.TrimPrefix(kind, "response."), ".")
	return hostedCall(item) || item == "code_interpreter_call_code" || strings.HasPrefix(item, "mcp_")
}

// SequenceNumber returns the sequence_number of the Responses event in an SSE chunk.
func SequenceNumber(chunk []byte) (int64, bool) {
	b, _ := parseBlock(chunk, nil)
	n := gjson.Get(b.data, "sequence_number")
	if n.Type != gjson.Number || n.Num < 0 || n.Num != float64(n.Int()) {
		return 0, false
	}
	return n.Int(), true
}
