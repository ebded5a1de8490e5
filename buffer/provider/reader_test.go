package provider

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// reading is a row: what a stream's chunks mean, and what its end is worth. marks has a word a chunk:
// c content, f finish, F final, ! failed, : comment, - nothing of these. clean and cut are the
// verdicts for a proper end and for a broken one.
type reading struct {
	name   string
	kind   frame.Kind // empty: SSE
	chunks []string
	marks  string
	clean  string
	cut    string
}

func (row reading) check(t *testing.T, d Dialect, stream bool) {
	t.Helper()
	kind := row.kind
	if kind == "" {
		kind = frame.SSE
	}
	r := NewReader(d, kind, stream)
	var marks []string
	for _, chunk := range row.chunks {
		marks = append(marks, spell(r.Read([]byte(chunk))))
	}
	if got := strings.Join(marks, " "); got != row.marks {
		t.Errorf("marks %q, want %q", got, row.marks)
	}
	if got := judge(r.Verdict(true)); got != row.clean {
		t.Errorf("clean end: %q, want %q", got, row.clean)
	}
	if got := judge(r.Verdict(false)); got != row.cut {
		t.Errorf("unclean end: %q, want %q", got, row.cut)
	}
}

func spell(m Mark) string {
	var s strings.Builder
	for _, l := range []struct {
		on     bool
		letter string
	}{{m.Content, "c"}, {m.Finish && !m.Final, "f"}, {m.Final, "F"}, {m.Failed, "!"}, {m.Comment, ":"}} {
		if l.on {
			s.WriteString(l.letter)
		}
	}
	if s.String() == "" {
		return "-"
	}
	return s.String()
}

func judge(v Verdict) string {
	switch {
	case v.Failure != nil:
		return "failed"
	case !v.Proven:
		return "open"
	}
	return strings.TrimSpace("proven " + strings.Join(v.Notes, " "))
}

func checkAll(t *testing.T, d Dialect, rows []reading) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { row.check(t, d, true) })
	}
}

func TestReader_Whole(t *testing.T) {
	for _, row := range []struct {
		dialect Dialect
		reading
	}{
		{OpenAIChat, reading{name: "chat", chunks: []string{`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{OpenAIChat, reading{name: "chat, empty", chunks: []string{`{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{OpenAIChat, reading{name: "chat, error under 200", chunks: []string{`{"error":{"message":"no"}}`}, marks: "!", clean: "failed", cut: "failed"}},
		{OpenAIChat, reading{name: "chat, page", chunks: []string{" <!doctype HTML>"}, marks: "!", clean: "failed", cut: "failed"}},
		{OpenAIChat, reading{name: "chat, half", chunks: []string{`{"choices":[`}, marks: "-", clean: "open", cut: "open"}},
		{OpenAIChat, reading{name: "chat, nothing", clean: "open", cut: "open"}},
		{OpenAIChat, reading{name: "chat, unknown shape", chunks: []string{`{"answer":"a"}`}, marks: "c", clean: "proven proof_weak", cut: "open"}},
		{OpenAIResponses, reading{name: "responses", chunks: []string{`{"object":"response","id":"resp_1","status":"completed","error":null,"output":[]}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{OpenAIResponses, reading{name: "responses, background", chunks: []string{`{"object":"response","status":"queued"}`}, marks: "c", clean: "proven", cut: "open"}},
		{OpenAIResponses, reading{name: "responses, failed", chunks: []string{`{"object":"response","status":"failed","error":{"code":"server_error"}}`}, marks: "!", clean: "failed", cut: "failed"}},
		{Anthropic, reading{name: "anthropic", chunks: []string{`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"refusal"}`}, marks: "cF", clean: "proven policy", cut: "proven policy"}},
		{Anthropic, reading{name: "anthropic, error", chunks: []string{`{"type":"error","error":{"type":"api_error"}}`}, marks: "!", clean: "failed", cut: "failed"}},
		{Gemini, reading{name: "gemini", chunks: []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{Gemini, reading{name: "gemini, an array", chunks: []string{`[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"finishReason":"STOP"}]}]`}, marks: "cF", clean: "proven", cut: "proven"}},
		{Bedrock, reading{name: "converse", chunks: []string{`{"output":{"message":{}},"stopReason":"end_turn","usage":{"inputTokens":1}}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{Bedrock, reading{name: "converse, error", chunks: []string{`{"message":"no"}`}, marks: "!", clean: "failed", cut: "failed"}},
		{BedrockInvoke, reading{name: "invoke", chunks: []string{`{"type":"message","content":[],"stop_reason":"end_turn"}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{Ollama, reading{name: "ollama", chunks: []string{`{"response":"a","done":true}`}, marks: "cF", clean: "proven", cut: "proven"}},
		{Generic, reading{name: "generic", chunks: []string{"anything"}, marks: "c", clean: "proven", cut: "open"}},
		{Generic, reading{name: "generic page is an answer", chunks: []string{"<html>"}, marks: "c", clean: "proven", cut: "open"}},
		{Generic, reading{name: "generic, nothing", clean: "proven", cut: "open"}},
	} {
		row.kind = frame.Whole
		t.Run(row.name, func(t *testing.T) { row.check(t, row.dialect, false) })
	}
}

func TestReader_VerdictFacts(t *testing.T) {
	read := func(d Dialect, k frame.Kind, chunks ...string) Verdict {
		r := NewReader(d, k, true)
		for _, c := range chunks {
			r.Read([]byte(c))
		}
		return r.Verdict(true)
	}
	t.Run("anthropic figures add up", func(t *testing.T) {
		v := read(Anthropic, frame.SSE,
			event("message_start", `,"message":{"id":"msg_1","model":"claude","usage":{"input_tokens":10,"output_tokens":1}}`),
			event("content_block_start", `,"content_block":{"type":"server_tool_use"}`),
			event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}`))
		if v.Usage == nil || v.Usage.InputTokens != 10 || v.Usage.OutputTokens != 3 || string(v.Usage.Raw) != `{"output_tokens":3}` {
			t.Errorf("usage %+v", v.Usage)
		}
		if v.ProviderID != "msg_1" || v.Model != "claude" || !v.ToolStarted {
			t.Errorf("verdict %+v", v)
		}
	})
	t.Run("the answer's id, not that of a keepalive before it", func(t *testing.T) {
		v := read(OpenAIChat, frame.SSE, `data: {"id":"k","model":"keepalive","choices":[{"delta":{"content":""}}]}`+"\n\n", chat(`{"content":"a"}`, "null"))
		if v.ProviderID != "chatcmpl-1" || v.Model != "m" {
			t.Errorf("id %q, model %q", v.ProviderID, v.Model)
		}
	})
	t.Run("the first error is kept as it came", func(t *testing.T) {
		first := event("error", `,"error":{"code":"a"}`)
		v := read(OpenAIResponses, frame.SSE, first, event("response.failed", `,"response":{"error":{"code":"b"}}`))
		if string(v.Failure) != `{"type":"error","error":{"code":"a"}}` || string(v.FailureChunk) != first {
			t.Errorf("failure %s in %q", v.Failure, v.FailureChunk)
		}
	})
	t.Run("an error that came in several reads is kept whole", func(t *testing.T) {
		first, second := `{"error":{"message":"slow`, ` down","code":"rate_limit_exceeded"}}`
		v := read(OpenAIChat, frame.Opaque, first, second)
		if string(v.Failure) != first+second || string(v.FailureChunk) != first+second {
			t.Errorf("failure %s in %q", v.Failure, v.FailureChunk)
		}
	})
	t.Run("an exception's type is in its chunk", func(t *testing.T) {
		chunk := string(appendMessage(nil, []byte(`{"message":"slow"}`), ":message-type", "exception", ":exception-type", "throttlingException"))
		v := read(Bedrock, frame.AWS, chunk)
		if string(v.Failure) != `{"message":"slow"}` || string(v.FailureChunk) != chunk {
			t.Errorf("failure %s in %q", v.Failure, v.FailureChunk)
		}
	})
	for name, item := range map[string]bool{
		`{"type":"web_search_call"}`:                           true,
		`{"type":"mcp_list_tools"}`:                            true,
		`{"type":"function_call"}`:                             false,
		`{"type":"computer_call"}`:                             false,
		`{"type":"tool_search_call","execution":"client"}`:     false,
		`{"type":"tool_search_call","execution":"server"}`:     true,
		`{"type":"message"}`:                                   false,
		`{"type":"shell_call","environment":{"type":"local"}}`: false,
	} {
		t.Run(name, func(t *testing.T) {
			if v := read(OpenAIResponses, frame.SSE, event("response.output_item.added", `,"item":`+name)); v.ToolStarted != item {
				t.Errorf("tool started %v, want %v", v.ToolStarted, item)
			}
		})
	}
}

// TestReader_DeltasCostNothing holds the path that every token takes to no allocation.
func TestReader_DeltasCostNothing(t *testing.T) {
	for _, row := range []struct {
		dialect Dialect
		kind    frame.Kind
		chunk   string
	}{
		{OpenAIChat, frame.SSE, chat(`{"content":"Hello"}`, "null")},
		{OpenAIResponses, frame.SSE, event("response.output_text.delta", `,"sequence_number":2,"delta":"Hello"`)},
		{Anthropic, frame.SSE, event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"Hello"}`)},
		{Gemini, frame.SSE, `data: {"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":3},"responseId":"r"}` + "\r\n\r\n"},
		{Ollama, frame.NDJSON, `{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}` + "\n"},
		{Bedrock, frame.AWS, awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`)},
		{BedrockInvoke, frame.AWS, awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(`{"type":"content_block_delta","delta":{"text":"Hello"}}`))+`"}`)},
		{Generic, frame.SSE, "data: {\"token\":\"Hello\"}\n\n"},
	} {
		t.Run(string(row.dialect), func(t *testing.T) {
			r := NewReader(row.dialect, row.kind, true)
			chunk := []byte(row.chunk)
			if n := testing.AllocsPerRun(100, func() { r.Read(chunk) }); n != 0 {
				t.Errorf("%v allocations a delta", n)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, rec := range recordings(f) {
		if len(rec.body) < 2500 {
			f.Add(rec.body)
		}
	}
	f.Add([]byte("\ufeffdata: {\"choices\":[{\"index\":-9223372036854775808,\"delta\":{\"a\":\"b\"}}]}\r\rdata\n\nevent: error\n\n[,]"))
	f.Fuzz(func(t *testing.T, body []byte) {
		chunk, rest := body[:len(body)/2], body[len(body)/2:]
		for _, d := range []Dialect{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, BedrockInvoke, Ollama, Generic} {
			for _, k := range []frame.Kind{frame.SSE, frame.NDJSON, frame.JSONArray, frame.AWS, frame.Opaque, frame.Whole} {
				r := NewReader(d, k, true)
				failed := false
				for _, c := range [][]byte{body, chunk, rest} {
					m := r.Read(c)
					failed = failed || m.Failed
					if m.Final && !m.Finish || m.Failed && m.Content {
						t.Fatalf("%s, %s: mark %+v", d, k, m)
					}
				}
				v := r.Verdict(true)
				if failed == (v.Failure == nil) || v.Proven && v.Failure != nil {
					t.Fatalf("%s, %s: failed %v, verdict %+v", d, k, failed, v)
				}
			}
			HostedTools(d, body)
			Model(d, string(body), body)
			AsksForStream(d, string(body), body)
		}
		SequenceNumber(body)
	})
}
