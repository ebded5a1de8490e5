package provider

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// chat is an SSE block with one choice.
func chat(delta, finish string) string { return chatOf("0", delta, finish) }

func chatOf(index, delta, finish string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":` +
		index + `,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n"
}

const (
	chatUsage = `data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
)

func TestReader_Chat(t *testing.T) {
	role, hello := chat(`{"role":"assistant","content":""}`, "null"), chat(`{"content":"Hello"}`, "null")
	stop := chat(`{}`, `"stop"`)
	checkAll(t, OpenAIChat, []reading{
		{name: "whole", chunks: []string{role, hello, stop, chatUsage, chatDone}, marks: "- c f - F", clean: "proven", cut: "proven"},
		{name: "finish without done", chunks: []string{role, hello, stop}, marks: "- c f", clean: "proven", cut: "proven usage_missing"},
		{name: "finish and usage without done", chunks: []string{hello, stop, chatUsage}, marks: "c f -", clean: "proven", cut: "proven"},
		{name: "finish, then comments", chunks: []string{hello, stop, ": keepalive\n\n"}, marks: "c f :", clean: "proven", cut: "proven usage_missing"},
		{name: "clean end without finish", chunks: []string{role, hello}, marks: "- c", clean: "open", cut: "open"},
		{name: "role only", chunks: []string{role}, marks: "-", clean: "open", cut: "open"},
		{name: "nothing", clean: "open", cut: "open"},
		{name: "comments only", chunks: []string{": PING\n\n", "\n", "retry: 3\n\n"}, marks: ": : :", clean: "open", cut: "open"},
		{name: "empty answer", chunks: []string{role, stop, chatDone}, marks: "- f F", clean: "proven", cut: "proven"},
		{name: "done alone", chunks: []string{chatDone}, marks: "F", clean: "proven proof_weak", cut: "proven proof_weak"},
		{name: "empty reason is no finish", chunks: []string{chat(`{"content":"a"}`, `""`)}, marks: "c", clean: "open", cut: "open"},
		{name: "stop on every chunk", chunks: []string{chat(`{"content":"a"}`, `"stop"`), chat(`{"content":"b"}`, `"stop"`)}, marks: "cf cf", clean: "proven", cut: "proven usage_missing"},
		{name: "content after the finish disarms it", chunks: []string{stop, hello}, marks: "f c", clean: "open", cut: "open"},
		{name: "a later finish arms again", chunks: []string{stop, hello, stop}, marks: "f c f", clean: "proven", cut: "proven usage_missing"},
		{name: "role after the finish does not disarm", chunks: []string{hello, stop, role}, marks: "c f -", clean: "proven", cut: "proven usage_missing"},
		{name: "two choices, one unfinished", chunks: []string{chatOf("0", `{"content":"a"}`, "null"), chatOf("1", `{"content":"b"}`, "null"), chatOf("0", `{}`, `"stop"`)}, marks: "c c -", clean: "open", cut: "open"},
		{name: "two choices, both finished", chunks: []string{chatOf("0", `{"content":"a"}`, "null"), chatOf("1", `{"content":"b"}`, `"length"`), chatOf("0", `{}`, `"stop"`)}, marks: "c c f", clean: "proven", cut: "proven usage_missing"},
		{name: "error event", chunks: []string{role, `data: {"error":{"message":"overloaded","code":"server_is_overloaded"}}` + "\n\n"}, marks: "- !", clean: "failed", cut: "failed"},
		{name: "error beside choices", chunks: []string{hello, `data: {"error":{"code":502},"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "error reason", chunks: []string{hello, chat(`{}`, `"error"`), chatDone}, marks: "c ! -", clean: "failed", cut: "failed"},
		{name: "error after the finish", chunks: []string{hello, stop, `data: {"error":"boom"}` + "\n\n", chatDone}, marks: "c f ! -", clean: "failed", cut: "failed"},
		{name: "error after the proof", chunks: []string{hello, chatDone, `data: {"error":"boom"}` + "\n\n"}, marks: "c F -", clean: "proven", cut: "proven"},
		{name: "null error", chunks: []string{`data: {"error":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n"}, marks: "cf", clean: "proven", cut: "proven usage_missing"},
		{name: "flat error", chunks: []string{`data: {"object":"error","message":"bad","code":400}` + "\n\n"}, marks: "!", clean: "failed", cut: "failed"},
		{name: "error by the event's name", chunks: []string{hello, "event: error\ndata: Internal Server Error\n\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "error in a field of its own", chunks: []string{hello, `error: {"code":500}` + "\n\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "refusal", chunks: []string{role, chat(`{}`, `"content_filter"`), chatDone}, marks: "- f F", clean: "proven policy", cut: "proven policy"},
		{name: "refusal in words", chunks: []string{chat(`{"refusal":"No."}`, "null"), stop, chatDone}, marks: "c f F", clean: "proven policy", cut: "proven policy"},
		{name: "prompt filter", chunks: []string{`data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}` + "\n\n", hello}, marks: "- c", clean: "open", cut: "open"},
		{name: "keepalives", chunks: []string{`data: {"type":"keepalive"}` + "\n\n", "event: ping\ndata: {}\n\n", hello}, marks: ": : c", clean: "open", cut: "open"},
		{name: "comment and data in one block", chunks: []string{": hb\n" + hello}, marks: "c", clean: "open", cut: "open"},
		{name: "forgotten blank lines", chunks: []string{strings.TrimSuffix(stop, "\n") + chatDone}, marks: "F", clean: "proven", cut: "proven"},
		{name: "older completions", chunks: []string{`data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}` + "\n\n", `data: {"choices":[{"text":"","finish_reason":"stop"}]}` + "\n\n"}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "unknown shape, clean end", chunks: []string{`data: {"token":"a"}` + "\n\n"}, marks: "c", clean: "proven proof_weak", cut: "open"},
		{name: "unknown shape, done", chunks: []string{`data: {"token":"a"}` + "\n\n", chatDone}, marks: "c F", clean: "proven proof_weak", cut: "proven proof_weak"},
		{name: "unknown event in a known stream", chunks: []string{hello, `data: {"token":"a"}` + "\n\n"}, marks: "c c", clean: "open", cut: "open"},
		{name: "JSON where a stream was due", chunks: []string{`{"object":"chat.completion","choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}`}, marks: "cF", clean: "proven", cut: "proven"},
		{name: "the same in pieces", chunks: []string{"{\n\n", `"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`}, marks: "- cF", clean: "proven", cut: "proven"},
		{name: "error JSON where a stream was due", chunks: []string{"{\"error\":{\"message\":\"no\"}}\n\n"}, marks: "!", clean: "failed", cut: "failed"},
		{name: "half JSON where a stream was due", chunks: []string{"{\"choices\":\n\n"}, marks: "-", clean: "open", cut: "open"},
		{name: "page where a stream was due", chunks: []string{"<!DOCTYPE html><html>\n\n"}, marks: "!", clean: "failed", cut: "failed"},
		{name: "text that no client of SSE sees", chunks: []string{"upstream connect error\n\n"}, marks: "-", clean: "open", cut: "open"},
		{name: "JSON object for an array", kind: frame.JSONArray, chunks: []string{`{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`}, marks: "cF", clean: "proven", cut: "proven"},
		{name: "untyped JSON in two reads", kind: frame.Opaque, chunks: []string{`{"error":`, `{"message":"no"}}`}, marks: "- !", clean: "failed", cut: "failed"},
		{name: "untyped text", kind: frame.Opaque, chunks: []string{"hel", "lo"}, marks: "c c", clean: "proven proof_weak", cut: "open"},
		{name: "untyped page in two reads", kind: frame.Opaque, chunks: []string{"<ht", "ml>"}, marks: "- !", clean: "failed", cut: "failed"},
	})
}

func TestReader_ChatContent(t *testing.T) {
	for name, row := range map[string]struct {
		delta string
		want  bool
	}{
		"null content":         {`{"content":null}`, false},
		"white space":          {`{"content":" "}`, true},
		"reasoning":            {`{"content":"","reasoning":"hm"}`, true},
		"reasoning_content":    {`{"reasoning_content":"hm"}`, true},
		"reasoning_details":    {`{"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0,"format":null}]}`, true},
		"empty details":        {`{"content":"","reasoning":null,"reasoning_details":[]}`, false},
		"tool name":            {`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"pay","arguments":""}}]}`, true},
		"tool argument":        {`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`, true},
		"empty tool call":      {`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"","arguments":""}}]}`, false},
		"no tool call":         {`{"content":"","function_call":null,"tool_calls":[]}`, false},
		"function_call":        {`{"function_call":{"name":"pay","arguments":""}}`, true},
		"audio":                {`{"audio":{"data":"UklGRg=="}}`, true},
		"audio id":             {`{"audio":{"id":"audio_1"}}`, false},
		"image":                {`{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]}`, true},
		"citation":             {`{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a"}}]}`, true},
		"parts":                {`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, true},
		"field nobody knows":   {`{"content":"","song":"la"}`, true},
		"token number":         {`{"token_id":7,"role":"assistant","content":""}`, false},
		"channel of an answer": {`{"role":"assistant","content":"","channel":"analysis"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if m := NewReader(OpenAIChat, frame.SSE, true).Read([]byte(chat(row.delta, "null"))); m.Content != row.want {
				t.Errorf("content %v, want %v", m.Content, row.want)
			}
		})
	}
}

// event is an SSE block with a name, as Responses and Anthropic send it; fields is JSON after type.
func event(kind, fields string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + fields + "}\n\n"
}

func TestReader_Responses(t *testing.T) {
	created := event("response.created", `,"sequence_number":0,"response":{"id":"resp_1","status":"in_progress","error":null,"usage":null}`)
	delta := event("response.output_text.delta", `,"sequence_number":2,"delta":"Hello"`)
	completed := event("response.completed", `,"response":{"id":"resp_1","usage":{"total_tokens":5}}`)
	checkAll(t, OpenAIResponses, []reading{
		{name: "whole", chunks: []string{created, delta, completed}, marks: "- c F", clean: "proven", cut: "proven"},
		{name: "incomplete", chunks: []string{created, delta, event("response.incomplete", `,"response":{"incomplete_details":{"reason":"max_output_tokens"}}`)}, marks: "- c F", clean: "proven", cut: "proven"},
		{name: "filtered", chunks: []string{created, event("response.incomplete", `,"response":{"incomplete_details":{"reason":"content_filter"}}`)}, marks: "- F", clean: "proven policy", cut: "proven policy"},
		{name: "refusal", chunks: []string{event("response.refusal.delta", `,"delta":"No."`), completed}, marks: "c F", clean: "proven policy", cut: "proven policy"},
		{name: "failed", chunks: []string{created, event("response.failed", `,"response":{"error":{"code":"server_error"}}`)}, marks: "- !", clean: "failed", cut: "failed"},
		{name: "nested error", chunks: []string{created, event("error", `,"error":{"code":"insufficient_quota"}`)}, marks: "- !", clean: "failed", cut: "failed"},
		{name: "flat error", chunks: []string{`data: {"type":"error","code":"server_error","message":"no","param":null}` + "\n\n"}, marks: "!", clean: "failed", cut: "failed"},
		{name: "error without a type", chunks: []string{`data: {"error":{"message":"no"}}` + "\n\n"}, marks: "!", clean: "failed", cut: "failed"},
		{name: "looks final", chunks: []string{delta, event("response.output_text.done", `,"text":"Hello"`), event("response.output_item.done", `,"item":{"type":"message"}`)}, marks: "c c c", clean: "open", cut: "open"},
		{name: "done is no proof here", chunks: []string{delta, chatDone}, marks: "c -", clean: "open", cut: "open"},
		{name: "done after the proof", chunks: []string{delta, completed, chatDone}, marks: "c F -", clean: "proven", cut: "proven"},
		{name: "keepalive", chunks: []string{created, event("keepalive", `,"sequence_number":2`), delta}, marks: "- : c", clean: "open", cut: "open"},
		{name: "preamble", chunks: []string{event("response.queued", ""), event("response.in_progress", ""), event("response.output_item.added", `,"item":{"type":"function_call","name":"f"}`), event("response.content_part.added", `,"part":{"type":"output_text","text":""}`)}, marks: "- - - -", clean: "open", cut: "open"},
		{name: "argument delta", chunks: []string{event("response.function_call_arguments.delta", `,"delta":"x"`)}, marks: "c", clean: "open", cut: "open"},
		{name: "empty delta", chunks: []string{event("response.output_text.delta", `,"delta":""`)}, marks: "-", clean: "open", cut: "open"},
		{name: "event nobody knows", chunks: []string{event("response.song.note", `,"note":1`)}, marks: "c", clean: "open", cut: "open"},
		{name: "type by the event's name alone", chunks: []string{"event: response.completed\ndata: {\"response\":{\"id\":\"resp_1\"}}\n\n"}, marks: "F", clean: "proven", cut: "proven"},
		{name: "unknown shape", chunks: []string{`data: {"token":"a"}` + "\n\n", chatDone}, marks: "c F", clean: "proven proof_weak", cut: "proven proof_weak"},
	})
}

func TestReader_Anthropic(t *testing.T) {
	start := event("message_start", `,"message":{"id":"msg_1","model":"claude","content":[],"usage":{"input_tokens":10,"output_tokens":1}}`)
	block := event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	delta := event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"Hello"}`)
	end := event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}`)
	stop := event("message_stop", "")
	checkAll(t, Anthropic, []reading{
		{name: "whole", chunks: []string{start, block, event("ping", ""), delta, event("content_block_stop", `,"index":0`), end, stop}, marks: "- - : c - f F", clean: "proven", cut: "proven"},
		{name: "without message_stop", chunks: []string{start, delta, end}, marks: "- c f", clean: "proven", cut: "proven"},
		{name: "without any figures", chunks: []string{delta, event("message_delta", `,"delta":{"stop_reason":"end_turn"}`)}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "three events, then a clean end", chunks: []string{start, block, delta}, marks: "- - c", clean: "open", cut: "open"},
		{name: "block stop looks final", chunks: []string{delta, event("content_block_stop", "")}, marks: "c -", clean: "open", cut: "open"},
		{name: "delta without a reason", chunks: []string{delta, event("message_delta", `,"delta":{"stop_reason":null}`)}, marks: "c -", clean: "open", cut: "open"},
		{name: "overloaded", chunks: []string{start, event("error", `,"error":{"type":"overloaded_error","message":"Overloaded"}`)}, marks: "- !", clean: "failed", cut: "failed"},
		{name: "refusal", chunks: []string{start, event("message_delta", `,"delta":{"stop_reason":"refusal"}`), stop}, marks: "- f F", clean: "proven policy", cut: "proven policy"},
		{name: "thinking and signature", chunks: []string{event("content_block_delta", `,"delta":{"type":"thinking_delta","thinking":"hm"}`), event("content_block_delta", `,"delta":{"type":"signature_delta","signature":"Eq"}`)}, marks: "c c", clean: "open", cut: "open"},
		{name: "empty argument", chunks: []string{event("content_block_start", `,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}`), event("content_block_delta", `,"delta":{"type":"input_json_delta","partial_json":""}`)}, marks: "- -", clean: "open", cut: "open"},
		{name: "redacted thinking comes with its start", chunks: []string{event("content_block_start", `,"content_block":{"type":"redacted_thinking","data":"Eu"}`)}, marks: "c", clean: "open", cut: "open"},
		{name: "hosted tool", chunks: []string{event("content_block_start", `,"content_block":{"type":"server_tool_use","name":"web_search","input":{}}`)}, marks: "c", clean: "open", cut: "open"},
		{name: "no blank after the colon, CR line ends", chunks: []string{"event:message_stop\rdata:{\"type\":\"message_stop\"}\r\r"}, marks: "F", clean: "proven", cut: "proven"},
	})
}

func TestReader_Gemini(t *testing.T) {
	part := func(parts, rest string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + rest + "}]}\r\n\r\n"
	}
	hello, stop := part(`{"text":"Hello"}`, ""), part("", `,"finishReason":"STOP"`)
	checkAll(t, Gemini, []reading{
		{name: "whole", chunks: []string{hello, stop}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "stop first, text later", chunks: []string{stop, hello}, marks: "f c", clean: "open", cut: "open"},
		{name: "stop first, text, stop", chunks: []string{stop, hello, stop}, marks: "f c f", clean: "proven", cut: "proven usage_missing"},
		{name: "text and stop together", chunks: []string{part(`{"text":"Hello"}`, `,"finishReason":"MAX_TOKENS"`)}, marks: "cf", clean: "proven", cut: "proven usage_missing"},
		{name: "no finish", chunks: []string{hello}, marks: "c", clean: "open", cut: "open"},
		{name: "unspecified is no finish", chunks: []string{part(`{"text":"a"}`, `,"finishReason":"FINISH_REASON_UNSPECIFIED"`)}, marks: "c", clean: "open", cut: "open"},
		{name: "empty parts", chunks: []string{part("", ""), part(`{"text":""}`, ""), part(`{"text":"","thought":true}`, "")}, marks: "- - -", clean: "open", cut: "open"},
		{name: "signature alone", chunks: []string{part(`{"text":"","thoughtSignature":"Eq"}`, "")}, marks: "c", clean: "open", cut: "open"},
		{name: "function call", chunks: []string{part(`{"functionCall":{"name":"f","args":{}}}`, "")}, marks: "c", clean: "open", cut: "open"},
		{name: "usage only", chunks: []string{hello, stop, `data: {"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}` + "\r\n\r\n"}, marks: "c f -", clean: "proven", cut: "proven"},
		{name: "blocked prompt", chunks: []string{`data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\r\n\r\n"}, marks: "F", clean: "proven policy", cut: "proven policy"},
		{name: "safety", chunks: []string{hello, part("", `,"finishReason":"SAFETY"`)}, marks: "c f", clean: "proven policy", cut: "proven usage_missing policy"},
		{name: "error event", chunks: []string{hello, `data: {"error":{"code":503,"status":"UNAVAILABLE"}}` + "\r\n\r\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "raw error behind the events", chunks: []string{hello, "{\n  \"error\": {\n    \"code\": 503\n  }\n}\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "array", kind: frame.JSONArray, chunks: []string{
			`[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, "\n,\r\n" + `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}` + "\n]"}, marks: "c cf", clean: "proven", cut: "proven usage_missing"},
		{name: "array with an error", kind: frame.JSONArray, chunks: []string{`[{"error":{"code":429}}]`}, marks: "!", clean: "failed", cut: "failed"},
		{name: "empty array", kind: frame.JSONArray, chunks: []string{"[]"}, marks: ":", clean: "open", cut: "open"},
	})
}

func TestReader_Ollama(t *testing.T) {
	hello := `{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}` + "\n"
	rows := []reading{
		{name: "whole", chunks: []string{hello, `{"model":"m","message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":3,"eval_count":2}` + "\n"}, marks: "c F", clean: "proven", cut: "proven"},
		{name: "generate", chunks: []string{`{"response":"a","done":false}` + "\n", `{"response":"","done":true}` + "\n"}, marks: "c F", clean: "proven", cut: "proven"},
		{name: "no end", chunks: []string{hello}, marks: "c", clean: "open", cut: "open"},
		{name: "error", chunks: []string{`{"response":"a","done":false}` + "\n", `{"error":"boom"}` + "\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "empty delta and blank line", chunks: []string{`{"message":{"role":"assistant","content":""},"done":false}` + "\n", "\n"}, marks: "- :", clean: "open", cut: "open"},
		{name: "thinking", chunks: []string{`{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}` + "\n"}, marks: "c", clean: "open", cut: "open"},
	}
	for i := range rows {
		rows[i].kind = frame.NDJSON
	}
	checkAll(t, Ollama, rows)

	const end = `{"done":true,"eval_count":2}`
	checkAll(t, Ollama, []reading{
		{name: "announced as JSON", kind: frame.JSONArray, chunks: []string{hello + end + "\n"}, marks: "cF", clean: "proven", cut: "proven"},
		{name: "announced as JSON, no last line end", kind: frame.JSONArray, chunks: []string{hello + end}, marks: "cF", clean: "proven", cut: "proven"},
		{name: "announced as JSON, no end", kind: frame.JSONArray, chunks: []string{hello + "\n" + hello}, marks: "c", clean: "open", cut: "open"},
		{name: "announced as JSON, an error", kind: frame.JSONArray, chunks: []string{hello + `{"error":"boom"}`}, marks: "!", clean: "failed", cut: "failed"},
		{name: "announced as text", kind: frame.Opaque, chunks: []string{hello[:9], hello[9:], hello + end[:5], end[5:]}, marks: "- c c F", clean: "proven", cut: "proven"},
		{name: "announced as text, then half a line", kind: frame.Opaque, chunks: []string{hello + hello, hello[:9]}, marks: "c -", clean: "open", cut: "open"},
		{name: "lines that are none of the dialect", kind: frame.Opaque, chunks: []string{"{\"a\":1}\n{\"a\":2}\n"}, marks: "c", clean: "proven proof_weak", cut: "open"},
	})
}

func awsEvent(name, payload string) string {
	return string(appendMessage(nil, []byte(payload), ":message-type", "event", ":event-type", name))
}

func TestReader_Bedrock(t *testing.T) {
	start, delta := awsEvent("messageStart", `{"role":"assistant"}`), awsEvent("contentBlockDelta", `{"delta":{"text":"Hello"}}`)
	stop := awsEvent("messageStop", `{"stopReason":"end_turn"}`)
	metadata := awsEvent("metadata", `{"usage":{"inputTokens":1,"outputTokens":2}}`)
	rows := []reading{
		{name: "whole", chunks: []string{start, delta, awsEvent("contentBlockStop", `{}`), stop, metadata}, marks: "- c - f F", clean: "proven", cut: "proven"},
		{name: "without metadata", chunks: []string{delta, stop}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "block stop looks final", chunks: []string{delta, awsEvent("contentBlockStop", `{}`)}, marks: "c -", clean: "open", cut: "open"},
		{name: "guardrail", chunks: []string{delta, awsEvent("messageStop", `{"stopReason":"guardrail_intervened"}`), metadata}, marks: "c f F", clean: "proven policy", cut: "proven policy"},
		{name: "exception", chunks: []string{delta, string(appendMessage(nil, []byte(`{"message":"slow"}`), ":message-type", "exception", ":exception-type", "throttlingException"))}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "error", chunks: []string{string(appendMessage(nil, nil, ":message-type", "error", ":error-code", "500", ":error-message", "no"))}, marks: "!", clean: "failed", cut: "failed"},
		{name: "hosted tool", chunks: []string{awsEvent("contentBlockStart", `{"start":{"toolUse":{"name":"nova_code_interpreter","type":"server_tool_use"}}}`)}, marks: "c", clean: "open", cut: "open"},
		{name: "own tool", chunks: []string{awsEvent("contentBlockStart", `{"start":{"toolUse":{"name":"f"}}}`)}, marks: "-", clean: "open", cut: "open"},
		{name: "event nobody knows", chunks: []string{start, awsEvent("song", `{"note":1}`)}, marks: "- c", clean: "open", cut: "open"},
	}
	for i := range rows {
		rows[i].kind = frame.AWS
	}
	checkAll(t, Bedrock, rows)
}

func TestReader_BedrockInvoke(t *testing.T) {
	inner := func(json string) string {
		return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(json))+`","p":"abc"}`)
	}
	const metrics = `"amazon-bedrock-invocationMetrics":{"inputTokenCount":1,"outputTokenCount":2}`
	rows := []reading{
		{name: "anthropic", chunks: []string{inner(`{"type":"message_start","message":{}}`), inner(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`), inner(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), inner(`{"type":"message_stop",` + metrics + `}`)}, marks: "- c f F", clean: "proven", cut: "proven"},
		{name: "nova", chunks: []string{inner(`{"contentBlockDelta":{"delta":{"text":"a"}}}`), inner(`{"messageStop":{"stopReason":"end_turn"}}`)}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "titan", chunks: []string{inner(`{"outputText":"a","index":0,"completionReason":null}`), inner(`{"outputText":"b","completionReason":"FINISH",` + metrics + `}`)}, marks: "c cF", clean: "proven", cut: "proven"},
		{name: "llama", chunks: []string{inner(`{"generation":"a","stop_reason":null}`), inner(`{"generation":"","stop_reason":"stop"}`)}, marks: "c f", clean: "proven", cut: "proven usage_missing"},
		{name: "chat", chunks: []string{inner(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`)}, marks: "cf", clean: "proven", cut: "proven usage_missing"},
		{name: "guardrail", chunks: []string{inner(`{"outputText":"Blocked","totalOutputTextTokenCount":3,"amazon-bedrock-guardrailAction":"INTERVENED"}`)}, marks: "cf", clean: "proven policy", cut: "proven policy"},
		{name: "cut", chunks: []string{inner(`{"outputText":"a"}`)}, marks: "c", clean: "open", cut: "open"},
	}
	for i := range rows {
		rows[i].kind = frame.AWS
	}
	checkAll(t, BedrockInvoke, rows)
}

func TestReader_Generic(t *testing.T) {
	checkAll(t, Generic, []reading{
		{name: "done", chunks: []string{"data: {\"a\":1}\n\n", chatDone}, marks: "c F", clean: "proven", cut: "proven"},
		{name: "clean end", chunks: []string{"data: {\"a\":1}\n\n"}, marks: "c", clean: "proven proof_weak", cut: "open"},
		{name: "error", chunks: []string{"data: {\"a\":1}\n\n", "event: error\ndata: {}\n\n"}, marks: "c !", clean: "failed", cut: "failed"},
		{name: "nothing", clean: "open", cut: "open"},
		{name: "opaque", kind: frame.Opaque, chunks: []string{"any", "thing"}, marks: "c c", clean: "proven", cut: "open"},
		{name: "page where a stream was due", kind: frame.Opaque, chunks: []string{"<html>"}, marks: "!", clean: "failed", cut: "failed"},
	})
}
