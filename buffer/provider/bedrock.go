package provider

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
)

// readMessage reads one message of an AWS event stream.
func (r *Reader) readMessage(chunk []byte) Mark {
	m, ok := parseMessage(chunk)
	if !ok {
		return r.unknown()
	}
	switch m.kind {
	case "exception":
		return r.fail(view(m.payload))
	case "error":
		if len(m.payload) == 0 {
			return r.fail(quote(map[string]string{"code": m.code, "message": m.text}))
		}
		return r.fail(view(m.payload))
	}
	if m.event == "initial-response" {
		return Mark{}
	}
	if len(m.payload) == 0 {
		return r.event(r, m.event, "{}")
	}
	if !valid(view(m.payload)) {
		return r.unknown()
	}
	return r.event(r, m.event, view(m.payload))
}

// readConverse reads an event of Bedrock's Converse by its name, or a whole answer. Nova's invoke
// sends the same events with the name as their only field.
func readConverse(r *Reader, name, data string) Mark {
	v := gjson.Parse(data)
	switch name {
	case "contentBlockDelta":
		return r.progress(filled(v.Get("delta")), false)
	case "contentBlockStart":
		return r.progress(r.readStart(v.Get("start")), false)
	case "messageStart", "contentBlockStop":
		return r.progress(false, false)
	case "messageStop":
		reason := said(v.Get("stopReason"))
		r.refused(reason)
		return r.progress(false, true)
	case "metadata":
		r.meter(v.Get("usage"))
		r.known = true
		if r.armed() { // nothing follows the figures
			return r.conclude()
		}
		return Mark{}
	}
	if inner, ok := wrapped(v); ok {
		return readConverse(r, inner, v.Get(inner).Raw)
	}
	if v.Get("output").Exists() || v.Get("stopReason").Exists() {
		return r.readWholeConverse(v)
	}
	if bare := v.Get("message"); v.Get("__type").Exists() || name == "" && bare.Type == gjson.String || v.Get("Message").Exists() {
		return r.fail(data) // AWS's own error
	}
	return readGeneric(r, name, data)
}

func (r *Reader) readWholeConverse(v gjson.Result) Mark {
	r.meter(v.Get("usage"))
	reason := said(v.Get("stopReason"))
	r.refused(reason)
	return r.progress(true, reason != "")
}

// readStart reports whether the start of a block is content by itself. That of a tool which the
// caller runs is not.
func (r *Reader) readStart(start gjson.Result) (content bool) {
	start.ForEach(func(key, value gjson.Result) bool {
		hosted := key.Str == "toolResult" || said(value.Get("type")) == "server_tool_use"
		r.tool = r.tool || hosted
		content = content || hosted || key.Str != "toolUse" && !empty(value)
		return true
	})
	return content
}

// wrapped returns the name of the Converse event that v holds as a field.
func wrapped(v gjson.Result) (name string, ok bool) {
	v.ForEach(func(key, _ gjson.Result) bool {
		switch key.Str {
		case "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata":
			name, ok = key.Str, true
		}
		return !ok
	})
	return name, ok
}

// readInvoke reads an event of Bedrock's InvokeModel: the model's own protocol, in base64. A whole
// answer is that protocol's body without a wrapper.
func readInvoke(r *Reader, name, data string) Mark {
	packed := gjson.Get(data, "bytes")
	if packed.Type != gjson.String {
		return r.readInner(data)
	}
	inner, err := base64.StdEncoding.AppendDecode(r.decoded[:0], unview(packed.Str))
	if err != nil || !valid(view(inner)) {
		return r.unknown()
	}
	r.decoded = inner
	return r.readInner(view(inner))
}

// readInner reads an event of a model's own protocol and what Bedrock adds to it: the figures come
// with the last event, whatever the protocol.
func (r *Reader) readInner(data string) Mark {
	v := gjson.Parse(data)
	m := innerReader(v)(r, "", data)
	if m.Failed || !strings.Contains(data, `"amazon-bedrock-`) {
		return m
	}
	if said(v.Get("amazon-bedrock-guardrailAction")) == "INTERVENED" {
		r.policy = true
	}
	metrics := v.Get("amazon-bedrock-invocationMetrics")
	if !metrics.IsObject() {
		return m
	}
	r.known = true
	r.meter(metrics)
	r.open, r.ended = 0, true
	last := r.conclude()
	last.Content = m.Content
	return last
}

// innerReader guesses the protocol of an event inside an invoke.
func innerReader(v gjson.Result) func(*Reader, string, string) Mark {
	if _, ok := wrapped(v); ok || v.Get("output.message").Exists() || v.Get("__type").Exists() {
		return readConverse
	}
	if v.Get("choices").IsArray() {
		return readChat
	}
	kind := said(v.Get("type"))
	if strings.HasPrefix(kind, "message") || strings.HasPrefix(kind, "content_block_") || kind == "ping" || kind == "error" {
		return readAnthropic
	}
	return readNative
}

// readNative reads an event of a text model that Bedrock hosts (Titan, Llama, Cohere, Mistral and the
// first Claude): some text, and at the end a reason.
func readNative(r *Reader, name, data string) Mark {
	content, known, reason := false, false, ""
	var failure gjson.Result
	figures, last := false, false
	gjson.Parse(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "outputText", "generation", "completion", "text":
			known = true
			content = content || filled(value)
		case "outputs", "results", "generations":
			known = known || value.IsArray()
			value.ForEach(func(_, output gjson.Result) bool {
				for _, field := range []string{"text", "outputText"} {
					content = content || filled(output.Get(field))
				}
				for _, field := range []string{"stop_reason", "completionReason", "finish_reason"} {
					reason += said(output.Get(field))
				}
				return true
			})
		case "completionReason", "stop_reason", "finish_reason":
			reason += said(value)
		case "generation_token_count":
			figures = figures || value.Type == gjson.Number
		case "totalOutputTextTokenCount": // in Titan's last event alone; a guardrail's block gives no reason
			if value.Type == gjson.Number {
				figures, last = true, true
			}
		case "error":
			failure = value
		}
		return true
	})
	if isError(failure) {
		return r.fail(data)
	}
	if !known {
		if v := gjson.Parse(data); v.Get("message").Type == gjson.String {
			return r.fail(data) // AWS's own error
		}
		return readGeneric(r, name, data)
	}
	if figures {
		r.meter(gjson.Parse(data))
	}
	r.refused(reason)
	return r.progress(content, last || reason != "")
}
