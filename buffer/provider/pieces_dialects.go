package provider

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
)

func (p *pieces) chat(v gjson.Result) {
	for _, choice := range v.Get("choices").Array() {
		if choice.Get("index").Int() != 0 {
			continue
		}
		p.said(PieceText, choice, "text") // the older completions
		for _, delta := range []gjson.Result{choice.Get("delta"), choice.Get("message")} {
			p.said(PieceThought, delta, "reasoning_content", "reasoning")
			p.said(PieceText, delta, "content")
			delta.Get("content").ForEach(func(_, part gjson.Result) bool { // some compatibles send parts
				p.said(PieceText, part, "text")
				return true
			})
			p.said(PieceRefusal, delta, "refusal")
			delta.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
				p.called(call.Get("function.name"), call.Get("function.arguments"))
				return true
			})
		}
	}
}

func (p *pieces) responses(v gjson.Result, name string) {
	kind := said(v.Get("type"))
	if kind == "" {
		kind = name
	}
	switch kind {
	case "response.output_text.delta":
		p.said(PieceText, v, "delta")
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		p.said(PieceThought, v, "delta")
	case "response.refusal.delta":
		p.said(PieceRefusal, v, "delta")
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta":
		p.said(PieceTool, v, "delta")
	case "response.output_item.added":
		p.called(v.Get("item.name"), gjson.Result{})
	case "response.failed":
		p.said(PieceError, v, "response.error.message")
	}
	if said(v.Get("object")) != "response" {
		return
	}
	v.Get("output").ForEach(func(_, item gjson.Result) bool {
		p.called(item.Get("name"), item.Get("arguments"))
		for _, part := range item.Get("summary").Array() {
			p.said(PieceThought, part, "text")
		}
		for _, part := range item.Get("content").Array() {
			p.said(PieceText, part, "text")
			p.said(PieceRefusal, part, "refusal")
		}
		return true
	})
}

func (p *pieces) anthropic(v gjson.Result) {
	block := func(b gjson.Result) {
		p.said(PieceThought, b, "thinking")
		p.said(PieceText, b, "text")
		p.called(b.Get("name"), gjson.Result{})
	}
	switch said(v.Get("type")) {
	case "content_block_start":
		block(v.Get("content_block"))
	case "content_block_delta":
		p.said(PieceThought, v, "delta.thinking")
		p.said(PieceText, v, "delta.text")
		p.said(PieceTool, v, "delta.partial_json")
	case "message":
		v.Get("content").ForEach(func(_, b gjson.Result) bool {
			block(b)
			p.called(gjson.Result{}, b.Get("input"))
			return true
		})
	default: // the first models
		p.said(PieceText, v, "completion")
	}
}

func (p *pieces) gemini(v gjson.Result) {
	v.Get("candidates.0.content.parts").ForEach(func(_, part gjson.Result) bool {
		kind := PieceText
		if part.Get("thought").Bool() {
			kind = PieceThought
		}
		p.said(kind, part, "text")
		p.called(part.Get("functionCall.name"), part.Get("functionCall.args"))
		return true
	})
	p.said(PieceRefusal, v, "promptFeedback.blockReason")
}

func (p *pieces) converse(v gjson.Result, name string) {
	if inner, ok := wrapped(v); ok {
		v, name = v.Get(inner), inner
	}
	switch name {
	case "contentBlockStart":
		p.called(v.Get("start.toolUse.name"), gjson.Result{})
	case "contentBlockDelta":
		p.said(PieceThought, v, "delta.reasoningContent.text")
		p.said(PieceText, v, "delta.text")
		p.said(PieceTool, v, "delta.toolUse.input")
	}
	v.Get("output.message.content").ForEach(func(_, b gjson.Result) bool {
		p.said(PieceThought, b, "reasoningContent.reasoningText.text")
		p.said(PieceText, b, "text")
		p.called(b.Get("toolUse.name"), b.Get("toolUse.input"))
		return true
	})
}

// invoke reads a model's own protocol, in base64 where it is streamed.
func (p *pieces) invoke(v gjson.Result) {
	if packed := v.Get("bytes"); packed.Type == gjson.String {
		inner, err := base64.StdEncoding.DecodeString(packed.Str)
		if err != nil || !gjson.ValidBytes(inner) {
			return
		}
		v = gjson.ParseBytes(inner)
	}
	switch _, converse := wrapped(v); {
	case converse || v.Get("output.message").Exists():
		p.converse(v, "")
	case v.Get("choices").IsArray():
		p.chat(v)
	case strings.HasPrefix(said(v.Get("type")), "message"), strings.HasPrefix(said(v.Get("type")), "content_block_"):
		p.anthropic(v)
	default:
		p.said(PieceText, v, "outputText", "generation", "completion", "text", "outputs.0.text", "results.0.outputText", "generations.0.text")
	}
}

func (p *pieces) ollama(v gjson.Result) {
	p.said(PieceThought, v, "message.thinking", "thinking")
	p.said(PieceText, v, "message.content", "response")
	v.Get("message.tool_calls").ForEach(func(_, call gjson.Result) bool {
		p.called(call.Get("function.name"), call.Get("function.arguments"))
		return true
	})
}
