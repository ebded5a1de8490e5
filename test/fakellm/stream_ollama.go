package fakellm

import "fmt"

// OllamaChat is a stream of Ollama's /api/chat: a JSON value on each line.
func OllamaChat(texts ...string) [][]byte {
	return ollama(texts, func(text string) string { return `"message":{"role":"assistant","content":` + text + `}` })
}

// OllamaGenerate is the same for /api/generate.
func OllamaGenerate(texts ...string) [][]byte {
	return ollama(texts, func(text string) string { return `"response":` + text })
}

func ollama(texts []string, field func(text string) string) [][]byte {
	var events [][]byte
	for _, t := range texts {
		events = append(events, ollamaLine(field(quote(t)), `"done":false`))
	}
	return append(events, ollamaLine(field(`""`), ollamaDone(len(texts))))
}

func ollamaLine(field, done string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"created_at":"2025-11-30T10:53:20Z",%s,%s}`+"\n", fakeModel, field, done)
}

func ollamaDone(tokens int) string {
	return fmt.Sprintf(`"done":true,"done_reason":"stop","total_duration":1000000,"load_duration":1000,"prompt_eval_count":%d,"prompt_eval_duration":1000,"eval_count":%d,"eval_duration":1000`, fakePrompt, tokens)
}

func ollamaChatBody(texts ...string) string {
	return string(ollamaLine(`"message":{"role":"assistant","content":`+quote(texts...)+`}`, ollamaDone(len(texts))))
}

func ollamaGenerateBody(texts ...string) string {
	return string(ollamaLine(`"response":`+quote(texts...), ollamaDone(len(texts))))
}
