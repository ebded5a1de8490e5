package provider

import (
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer/frame"
)

// endings is which paths generate, by how they end. A path that begins with a slash here is a whole
// segment or more, so that /messages is none of /xmessages.
var endings = []struct {
	suffix  string
	dialect Dialect
}{
	{"/chat/completions", OpenAIChat},
	{"/completions", OpenAIChat},
	{"/responses", OpenAIResponses},
	{"/messages", Anthropic},
	{":generateContent", Gemini},
	{":streamGenerateContent", Gemini},
	{"/converse", Bedrock},
	{"/converse-stream", Bedrock},
	{"/invoke", BedrockInvoke},
	{"/invoke-with-response-stream", BedrockInvoke},
	{"/api/chat", Ollama},
	{"/api/generate", Ollama},
}

// Generation returns the dialect of a generation call, and whether the call is one: a POST whose path
// ends as docs/providers.md, section 1, lists. Case counts, as it does for the providers; one
// trailing slash does not.
func Generation(method, path string) (Dialect, bool) {
	if method != "POST" {
		return "", false
	}
	path = strings.TrimSuffix(path, "/")
	for _, e := range endings {
		if strings.HasSuffix(path, e.suffix) {
			return e.dialect, true
		}
	}
	return "", false
}

// AsksForStream reports whether a generation call asks for an answer that comes in pieces. No dialect
// says so in its query.
func AsksForStream(d Dialect, path string, body []byte) bool {
	path = strings.TrimSuffix(path, "/")
	switch d {
	case Gemini:
		return strings.HasSuffix(path, ":streamGenerateContent")
	case Bedrock, BedrockInvoke:
		return strings.HasSuffix(path, "/converse-stream") || strings.HasSuffix(path, "/invoke-with-response-stream")
	case Ollama:
		return gjson.GetBytes(body, "stream").Type != gjson.False
	}
	return gjson.GetBytes(body, "stream").Type == gjson.True
}

// StreamKind is the framing that a stream of dialect d has where the provider has not said it yet.
// query is the call's, since Gemini's callers choose there.
func StreamKind(d Dialect, query string) frame.Kind {
	switch d {
	case Gemini:
		if altSSE(query) {
			return frame.SSE
		}
		return frame.JSONArray
	case Bedrock, BedrockInvoke:
		return frame.AWS
	case Ollama:
		return frame.NDJSON
	}
	return frame.SSE
}

// ContentType is the media type of a stream of dialect d in framing k, for an answer whose head is
// sent before the provider's is known. An empty k is the framing that StreamKind names.
func ContentType(d Dialect, k frame.Kind) string {
	if k == "" {
		k = StreamKind(d, "")
	}
	switch k {
	case frame.NDJSON:
		return "application/x-ndjson"
	case frame.JSONArray, frame.Whole:
		return "application/json"
	case frame.AWS:
		return "application/vnd.amazon.eventstream"
	case frame.Opaque:
		return "application/octet-stream"
	}
	return "text/event-stream"
}

func altSSE(query string) bool {
	values, _ := url.ParseQuery(query) // what is broken in one part still counts in the others
	return values.Get("alt") == "sse"
}

// Model returns the model that a call asks for, from its path where the dialect puts it there, else
// from its body; empty where neither names one.
func Model(d Dialect, path string, body []byte) string {
	switch d {
	case Gemini:
		name, _, _ := strings.Cut(after(path, "/models/"), ":")
		if name == "" { // tuned models and other resources: the last segment
			name, _, _ = strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
		}
		return unescaped(name)
	case Bedrock, BedrockInvoke:
		id := after(path, "/model/")
		if i := strings.LastIndexByte(strings.TrimSuffix(id, "/"), '/'); i >= 0 {
			id = id[:i]
		}
		return unescaped(id)
	}
	if m := gjson.GetBytes(body, "model"); m.Type == gjson.String {
		return m.Str
	}
	name, _, _ := strings.Cut(after(path, "/deployments/"), "/") // Azure
	return unescaped(name)
}

// after is what follows the last mark in path; empty where there is none.
func after(path, mark string) string {
	i := strings.LastIndex(path, mark)
	if i < 0 {
		return ""
	}
	return path[i+len(mark):]
}

func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}
