package provider_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/spool-dev/spool/buffer/provider"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/test/fakellm"
)

// TestPieces_Text reads the scripted provider's answers, in every dialect, back into their words.
func TestPieces_Text(t *testing.T) {
	words := []string{"Once ", "upon ", "a ", "time, ", "<b>", "\"ende\" é\n"}
	for _, row := range []struct {
		name    string
		dialect Dialect
		kind    frame.Kind
		chunks  [][]byte
	}{
		{"chat", OpenAIChat, frame.SSE, fakellm.Chat(words...)},
		{"responses", OpenAIResponses, frame.SSE, fakellm.Responses(words...)},
		{"anthropic", Anthropic, frame.SSE, fakellm.Messages(words...)},
		{"gemini", Gemini, frame.SSE, fakellm.GeminiSSE(words...)},
		{"gemini array", Gemini, frame.JSONArray, fakellm.GeminiArray(words...)},
		{"converse", Bedrock, frame.AWS, fakellm.Converse(words...)},
		{"invoke", BedrockInvoke, frame.AWS, fakellm.Invoke(words...)},
		{"ollama chat", Ollama, frame.NDJSON, fakellm.OllamaChat(words...)},
		{"ollama generate", Ollama, frame.NDJSON, fakellm.OllamaGenerate(words...)},
	} {
		t.Run(row.name, func(t *testing.T) {
			var text strings.Builder
			for _, c := range row.chunks {
				for _, p := range Pieces(row.dialect, row.kind, c) {
					if p.Kind != PieceText {
						t.Errorf("%q is of kind %s", p.Text, p.Kind)
					}
					text.WriteString(p.Text)
				}
			}
			if diff := cmp.Diff(strings.Join(words, ""), text.String()); diff != "" {
				t.Error("text (-said +read)\n", diff)
			}
		})
	}
}

func TestPieces_Kinds(t *testing.T) {
	for _, row := range []struct {
		name    string
		dialect Dialect
		kind    frame.Kind
		chunk   string
		want    []Piece
	}{
		{"chat tool", OpenAIChat, frame.SSE, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":"}}]}}]}` + "\n\n", []Piece{{PieceTool, "\nf {\"a\":"}}},
		{"chat reasoning", OpenAIChat, frame.SSE, `data: {"choices":[{"delta":{"reasoning_content":"hm","content":"yes"}}]}` + "\n\n", []Piece{{PieceThought, "hm"}, {PieceText, "yes"}}},
		{"chat other choice", OpenAIChat, frame.SSE, `data: {"choices":[{"index":1,"delta":{"content":"no"}}]}` + "\n\n", nil},
		{"chat whole", OpenAIChat, frame.Whole, `{"choices":[{"index":0,"message":{"content":"all"}}]}`, []Piece{{PieceText, "all"}}},
		{"chat null", OpenAIChat, frame.Whole, `{"choices":[null,{"delta":7}],"error":null}`, nil},
		{"refusal", OpenAIChat, frame.Whole, `{"choices":[{"message":{"refusal":"no"}}]}`, []Piece{{PieceRefusal, "no"}}},
		{"error", OpenAIChat, frame.Whole, `{"error":{"message":"bad key"}}`, []Piece{{PieceError, "bad key"}}},
		{"error without message", OpenAIChat, frame.Whole, `{"error":{"code":7}}`, []Piece{{PieceError, `{"error":{"code":7}}`}}},
		{"responses thought", OpenAIResponses, frame.SSE, "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"hm\"}\n\n", []Piece{{PieceThought, "hm"}}},
		{"responses whole", OpenAIResponses, frame.Whole, `{"object":"response","output":[{"type":"message","content":[{"text":"all"}]}]}`, []Piece{{PieceText, "all"}}},
		{"anthropic thought", Anthropic, frame.SSE, "data: {\"type\":\"content_block_delta\",\"delta\":{\"thinking\":\"hm\"}}\n\n", []Piece{{PieceThought, "hm"}}},
		{"anthropic tool", Anthropic, frame.SSE, "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}}}\n\n", []Piece{{PieceTool, "\nf "}}},
		{"anthropic whole", Anthropic, frame.Whole, `{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f","input":{"x":1}}]}`, []Piece{{PieceText, "a"}, {PieceTool, "\nf {\"x\":1}"}}},
		{"gemini thought", Gemini, frame.SSE, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}]}}]}\n\n", []Piece{{PieceThought, "hm"}}},
		{"gemini blocked", Gemini, frame.Whole, `{"promptFeedback":{"blockReason":"SAFETY"}}`, []Piece{{PieceRefusal, "SAFETY"}}},
		{"events without a blank line", OpenAIChat, frame.SSE, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", []Piece{{PieceText, "ab"}}},
		{"ping", Anthropic, frame.SSE, "event: ping\ndata: {\"type\":\"ping\"}\n\n", nil},
		{"comment", OpenAIChat, frame.SSE, ": keepalive\n\n", nil},
		{"done", OpenAIChat, frame.SSE, "data: [DONE]\n\n", nil},
		{"no JSON", Generic, frame.Opaque, "plain words", []Piece{{PieceText, "plain words"}}},
		{"broken message", Bedrock, frame.AWS, "xx", nil},
		{"broken base64", BedrockInvoke, frame.Whole, `{"bytes":"*"}`, nil},
		{"nothing", OpenAIChat, frame.SSE, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, Pieces(row.dialect, row.kind, []byte(row.chunk))); diff != "" {
				t.Error("pieces (-want +got)\n", diff)
			}
		})
	}
}

// FuzzPieces: no answer of a provider's may bring the reader down.
func FuzzPieces(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
	f.Add(`[{"error":{"message":1}}]`)
	f.Fuzz(func(t *testing.T, chunk string) {
		for _, d := range []Dialect{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, BedrockInvoke, Ollama, Generic} {
			for _, k := range []frame.Kind{frame.SSE, frame.NDJSON, frame.JSONArray, frame.AWS, frame.Opaque, frame.Whole} {
				for _, p := range Pieces(d, k, []byte(chunk)) {
					if p.Text == "" {
						t.Errorf("an empty piece of %s", d)
					}
				}
			}
		}
	})
}
