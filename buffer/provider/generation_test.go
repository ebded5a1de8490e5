package provider

import (
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

func TestGeneration_Paths(t *testing.T) {
	for path, want := range map[string]Dialect{
		"/v1/chat/completions":                            OpenAIChat,
		"/v1/chat/completions/":                           OpenAIChat,
		"/openai/deployments/d/chat/completions":          OpenAIChat,
		"/v1/completions":                                 OpenAIChat,
		"/v1/responses":                                   OpenAIResponses,
		"/v1/messages":                                    Anthropic,
		"/v1beta/models/gemini-2.0-flash:generateContent": Gemini,
		"/v1beta/models/g:streamGenerateContent":          Gemini,
		"/model/anthropic.claude/converse":                Bedrock,
		"/model/a%2Fb/converse-stream":                    Bedrock,
		"/model/a/invoke":                                 BedrockInvoke,
		"/model/a/invoke-with-response-stream":            BedrockInvoke,
		"/api/chat":                                       Ollama,
		"/api/generate":                                   Ollama,
		"/v1/responses/resp_1":                            "",
		"/v1/responses/resp_1/cancel":                     "",
		"/v1/messages/count_tokens":                       "",
		"/v1/messages/batches":                            "",
		"/v1/chat/completions/chatcmpl-1":                 "",
		"/v1/embeddings":                                  "",
		"/v1/xmessages":                                   "",
		"/v1/Messages":                                    "",
		"/v1beta/models/g:countTokens":                    "",
		"/v1/models":                                      "",
		"":                                                "",
	} {
		t.Run(path, func(t *testing.T) {
			d, ok := Generation("POST", path)
			if d != want || ok != (want != "") {
				t.Errorf("%q, %v, want %q", d, ok, want)
			}
			if d, ok := Generation("GET", path); ok {
				t.Errorf("a GET is %q", d)
			}
		})
	}
}

func TestAsksForStream_EachDialect(t *testing.T) {
	for _, row := range []struct {
		name, path, query, body string
		dialect                 Dialect
		want                    bool
	}{
		{"chat, true", "/v1/chat/completions", "", `{"stream": true}`, OpenAIChat, true},
		{"chat, false", "/v1/chat/completions", "", `{"stream": false}`, OpenAIChat, false},
		{"chat, absent", "/v1/chat/completions", "", `{"messages":[{"stream":true}]}`, OpenAIChat, false},
		{"chat, no JSON", "/v1/chat/completions", "", `stream`, OpenAIChat, false},
		{"anthropic", "/v1/messages", "", `{"stream":true}`, Anthropic, true},
		{"gemini, stream", "/v1beta/models/g:streamGenerateContent", "", `{}`, Gemini, true},
		{"gemini, whole", "/v1beta/models/g:generateContent", "alt=sse", `{}`, Gemini, false},
		{"converse", "/model/a/converse", "", `{}`, Bedrock, false},
		{"converse stream", "/model/a/converse-stream", "", `{}`, Bedrock, true},
		{"invoke stream", "/model/a/invoke-with-response-stream", "", `{}`, BedrockInvoke, true},
		{"ollama, absent", "/api/chat", "", `{}`, Ollama, true},
		{"ollama, false", "/api/chat", "", `{"stream":false}`, Ollama, false},
		{"generic", "/x", "", `{"stream":true}`, Generic, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := AsksForStream(row.dialect, row.path, []byte(row.body)); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

func TestModel_FromPathOrBody(t *testing.T) {
	for _, row := range []struct {
		path, body string
		dialect    Dialect
		want       string
	}{
		{"/v1/chat/completions", `{"model":"gpt"}`, OpenAIChat, "gpt"},
		{"/v1/chat/completions", `{"model":7}`, OpenAIChat, ""},
		{"/openai/deployments/mine/chat/completions", `{}`, OpenAIChat, "mine"},
		{"/v1beta/models/gemini-2.0-flash:generateContent", `{"model":"x"}`, Gemini, "gemini-2.0-flash"},
		{"/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", ``, Gemini, "g"},
		{"/v1beta/tunedModels/t:generateContent", ``, Gemini, "t"},
		{"/model/arn%3Aaws%3Abedrock%2Fx/converse", ``, Bedrock, "arn:aws:bedrock/x"},
		{"/model/anthropic.claude-v2:1/invoke-with-response-stream", ``, BedrockInvoke, "anthropic.claude-v2:1"},
		{"/api/chat", `{"model":"llama"}`, Ollama, "llama"},
	} {
		t.Run(row.path, func(t *testing.T) {
			if got := Model(row.dialect, row.path, []byte(row.body)); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestHostedTools_EachDialect(t *testing.T) {
	for _, row := range []struct {
		name    string
		dialect Dialect
		body    string
		want    bool
	}{
		{"no tools", OpenAIResponses, `{"model":"m"}`, false},
		{"no JSON", OpenAIResponses, `tools`, false},
		{"function", OpenAIResponses, `{"tools":[{"type":"function","name":"f"}]}`, false},
		{"web search", OpenAIResponses, `{"tools":[{"type":"function"},{"type":"web_search_preview"}]}`, true},
		{"mcp", OpenAIResponses, `{"tools":[{"type":"mcp"}]}`, true},
		{"computer use", OpenAIResponses, `{"tools":[{"type":"computer_use_preview"}]}`, false},
		{"local shell", OpenAIResponses, `{"tools":[{"type":"shell","environment":{"type":"local"}}]}`, false},
		{"hosted shell", OpenAIResponses, `{"tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, true},
		{"namespace of functions", OpenAIResponses, `{"tools":[{"type":"namespace","tools":[{"type":"function"}]}]}`, false},
		{"chat function", OpenAIChat, `{"tools":[{"type":"function","function":{"name":"web_search"}}]}`, false},
		{"chat search model", OpenAIChat, `{"web_search_options":{}}`, true},
		{"groq browser", OpenAIChat, `{"tools":[{"type":"browser_search"}]}`, true},
		{"openrouter plugin", OpenAIChat, `{"plugins":[{"id":"web"}]}`, true},
		{"openrouter other plugin", OpenAIChat, `{"plugins":[{"id":"response-healing"}]}`, false},
		{"openrouter online", OpenAIChat, `{"model":"openai/gpt-4o:online"}`, true},
		{"anthropic own tool", Anthropic, `{"tools":[{"name":"f","input_schema":{}},{"type":"custom"}]}`, false},
		{"anthropic client tools", Anthropic, `{"tools":[{"type":"bash_20250124"},{"type":"text_editor_20250728"},{"type":"computer_20250124"},{"type":"memory_20250818"}]}`, false},
		{"anthropic web search", Anthropic, `{"tools":[{"type":"web_search_20250305"}]}`, true},
		{"anthropic code", Anthropic, `{"tools":[{"type":"code_execution_20250825"}]}`, true},
		{"anthropic mcp", Anthropic, `{"mcp_servers":[{"url":"https://a"}]}`, true},
		{"anthropic no mcp", Anthropic, `{"mcp_servers":[]}`, false},
		{"gemini function", Gemini, `{"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, false},
		{"gemini search", Gemini, `{"tools":[{"googleSearch":{}}]}`, true},
		{"gemini search, other spelling", Gemini, `{"tools":[{"function_declarations":[],"google_search":{}}]}`, true},
		{"gemini code", Gemini, `{"tools":[{"code_execution":{}}]}`, true},
		{"bedrock tool", Bedrock, `{"toolConfig":{"tools":[{"toolSpec":{"name":"f"}}]}}`, false},
		{"bedrock system tool", Bedrock, `{"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}}`, true},
		{"ollama", Ollama, `{"tools":[{"type":"function"}]}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := HostedTools(row.dialect, []byte(row.body)); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

func TestContentType_BeforeTheProviderSpoke(t *testing.T) {
	for _, row := range []struct {
		dialect Dialect
		query   string
		kind    frame.Kind
		want    string
	}{
		{OpenAIChat, "", frame.SSE, "text/event-stream"},
		{Anthropic, "beta=true", frame.SSE, "text/event-stream"},
		{Gemini, "alt=sse&key=k", frame.SSE, "text/event-stream"},
		{Gemini, "key=k", frame.JSONArray, "application/json"},
		{Gemini, "%zz&alt=sse", frame.SSE, "text/event-stream"},
		{Ollama, "", frame.NDJSON, "application/x-ndjson"},
		{Bedrock, "", frame.AWS, "application/vnd.amazon.eventstream"},
		{BedrockInvoke, "", frame.AWS, "application/vnd.amazon.eventstream"},
	} {
		t.Run(string(row.dialect)+"?"+row.query, func(t *testing.T) {
			kind := StreamKind(row.dialect, row.query)
			if got := ContentType(row.dialect, kind); kind != row.kind || got != row.want {
				t.Errorf("%s, %s, want %s, %s", kind, got, row.kind, row.want)
			}
		})
	}
	if got := ContentType(Ollama, ""); got != "application/x-ndjson" {
		t.Errorf("without a framing: %s", got)
	}
}
