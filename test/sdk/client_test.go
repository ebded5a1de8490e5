package sdk

import "strings"

// language is that of an SDK, and says which driver runs it.
type language string

const (
	js     language = "js"
	deno   language = "deno" // the driver of js, in another runtime
	golang language = "go"
)

// Dialects, by the names that recordings give theirs.
const (
	chat      = "openai_chat"
	responses = "openai_responses"
	anthropic = "anthropic"
	gemini    = "gemini"
)

// client is one way into one SDK.
type client struct {
	name     string
	language language
	dialect  string
	raw      bool // yields the events of the stream one by one: what recordings are read with
	fetch    bool // takes a fetch of ours
}

var clients = []client{
	{name: "openai-chat", language: js, dialect: chat, raw: true, fetch: true},
	{name: "openai-chat-helper", language: js, dialect: chat, fetch: true},
	{name: "openai-responses", language: js, dialect: responses, raw: true, fetch: true},
	{name: "openai-responses-helper", language: js, dialect: responses, fetch: true},
	{name: "openai-agents", language: js, dialect: responses},
	{name: "anthropic", language: js, dialect: anthropic, raw: true, fetch: true},
	{name: "anthropic-helper", language: js, dialect: anthropic, fetch: true},
	{name: "fetch-event-source", language: js, dialect: anthropic, raw: true, fetch: true},
	{name: "genai", language: js, dialect: gemini, raw: true, fetch: true},
	{name: "ai-openai-chat", language: js, dialect: chat, fetch: true},
	{name: "ai-openai-responses", language: js, dialect: responses, fetch: true},
	{name: "ai-anthropic", language: js, dialect: anthropic, fetch: true},
	{name: "ai-google", language: js, dialect: gemini, fetch: true},
	{name: "langchain-openai", language: js, dialect: chat, fetch: true},
	{name: "langchain-anthropic", language: js, dialect: anthropic, fetch: true},
	{name: "openai-go-chat", language: golang, dialect: chat, raw: true},
	{name: "openai-go-responses", language: golang, dialect: responses, raw: true},
	{name: "anthropic-go", language: golang, dialect: anthropic, raw: true},
	{name: "genai-go", language: golang, dialect: gemini, raw: true},
	{name: "go-openai", language: golang, dialect: chat, raw: true},
}

// legacyCompletions reads the recordings of a path that the emulator does not have.
var legacyCompletions = client{name: "openai-completions", language: js, dialect: chat, raw: true}

// job makes the one job of a client that has this id.
func (c client) job(id, base, prompt string) job {
	return job{ID: id, Client: c.name, Base: base, Prompt: prompt, Model: c.model(id), language: c.language}
}

// model makes a model's name of an id. SDKs know some families by the first letters.
func (c client) model(id string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/ ,=", r) {
			return '-'
		}
		return r
	}, id)
	switch c.dialect {
	case anthropic:
		return "claude-" + name
	case gemini:
		return "gemini-2.5-flash-" + name
	default:
		return "lab-" + name
	}
}
