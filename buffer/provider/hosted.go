package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// HostedTools reports whether a call's body asks for tools that the provider itself runs, so that
// the same call sent twice could do something twice. A kind of tool that is not known to run at the
// caller counts as the provider's.
func HostedTools(d Dialect, body []byte) bool {
	switch d {
	case Anthropic:
		return anthropicHosted(body)
	case Gemini:
		return geminiHosted(body)
	case Bedrock:
		return bedrockHosted(body)
	case BedrockInvoke:
		return anthropicHosted(body) || bedrockHosted(body)
	case Ollama:
		return false
	}
	return openAIHosted(body)
}

// openAIHosted reads the tools of chat, of Responses, and of those that are compatible with them.
func openAIHosted(body []byte) bool {
	if anyOf(gjson.GetBytes(body, "tools"), openAIRuns) {
		return true
	}
	if gjson.GetBytes(body, "web_search_options").IsObject() { // chat's search models
		return true
	}
	if s := gjson.GetBytes(body, "search_parameters"); s.IsObject() && s.Get("mode").Str != "off" { // xAI
		return true
	}
	if strings.HasSuffix(gjson.GetBytes(body, "model").Str, ":online") { // OpenRouter
		return true
	}
	return anyOf(gjson.GetBytes(body, "plugins"), func(p gjson.Result) bool { // OpenRouter
		return p.Get("id").Str == "web" && p.Get("enabled").Type != gjson.False
	})
}

func openAIRuns(tool gjson.Result) bool {
	switch kind := tool.Get("type").Str; kind {
	case "", "function", "custom", "local_shell", "apply_patch":
		return false
	case "shell":
		return tool.Get("environment.type").Str != "local"
	case "tool_search":
		return tool.Get("execution").Str != "client"
	case "namespace": // a group of tools
		return anyOf(tool.Get("tools"), func(t gjson.Result) bool {
			kind := t.Get("type").Str
			return kind != "" && kind != "function" && kind != "custom"
		})
	default:
		return !strings.HasPrefix(kind, "computer")
	}
}

func anthropicHosted(body []byte) bool {
	servers := gjson.GetBytes(body, "mcp_servers")
	if anyOf(servers, func(gjson.Result) bool { return true }) {
		return true
	}
	return anyOf(gjson.GetBytes(body, "tools"), func(tool gjson.Result) bool {
		kind := tool.Get("type").Str
		if kind == "" || kind == "custom" {
			return false
		}
		for _, client := range []string{"bash_", "text_editor_", "computer_", "memory_"} {
			if strings.HasPrefix(kind, client) {
				return false
			}
		}
		return true
	})
}

// geminiHosted knows a tool by the name of its field.
func geminiHosted(body []byte) bool {
	hosted := func(tool gjson.Result) (found bool) {
		tool.ForEach(func(field, _ gjson.Result) bool {
			switch field.Str {
			case "functionDeclarations", "function_declarations", "computerUse", "computer_use":
			default:
				found = true
			}
			return !found
		})
		return found
	}
	tools := gjson.GetBytes(body, "tools")
	if tools.IsObject() { // some callers send one tool without its array
		return hosted(tools)
	}
	return anyOf(tools, hosted)
}

func bedrockHosted(body []byte) bool {
	return anyOf(gjson.GetBytes(body, "toolConfig.tools"), func(tool gjson.Result) bool {
		return tool.Get("systemTool").Exists()
	})
}

// anyOf reports whether an element of the array list satisfies is.
func anyOf(list gjson.Result, is func(gjson.Result) bool) (found bool) {
	if !list.IsArray() {
		return false
	}
	list.ForEach(func(_, element gjson.Result) bool {
		found = is(element)
		return !found
	})
	return found
}
