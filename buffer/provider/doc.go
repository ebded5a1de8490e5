// Package provider knows what the providers' protocols say: which calls generate, what in an answer
// is content, what proves its end, what an error looks like in each dialect, and how to send a
// request. It reads just enough of each event for that and never rebuilds one.
package provider

// Dialect names the protocol of a call and its answer.
type Dialect string

// The dialects.
const (
	OpenAIChat      Dialect = "openai_chat"
	OpenAIResponses Dialect = "openai_responses"
	Anthropic       Dialect = "anthropic"
	Gemini          Dialect = "gemini"
	Bedrock         Dialect = "bedrock"        // Converse and ConverseStream
	BedrockInvoke   Dialect = "bedrock_invoke" // InvokeModel: the inner dialect in base64 bytes
	Ollama          Dialect = "ollama"
	Generic         Dialect = "generic" // anything else that a config says generates
)

// Usage holds the figures that all providers give in some form. Tokens; cumulative. Raw is the
// provider's own object.
type Usage struct {
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	Raw          []byte `json:"-"`
}
