package fakellm

import "fmt"

// GeminiSSE is a Gemini stream with alt=sse; its lines end in CRLF.
func GeminiSSE(texts ...string) [][]byte {
	var events [][]byte
	for _, c := range candidates(texts) {
		events = append(events, []byte("data: "+c+"\r\n\r\n"))
	}
	return events
}

// GeminiArray is a Gemini stream without alt=sse: one JSON array, an element for each event.
func GeminiArray(texts ...string) [][]byte {
	var events [][]byte
	before := "["
	for _, c := range candidates(texts) {
		events = append(events, []byte(before+c))
		before = "\n,\r\n"
	}
	last := len(events) - 1
	events[last] = append(events[last], "\n]"...)
	return events
}

// candidates are the elements of a Gemini stream; the last one has the finish and no text.
func candidates(texts []string) []string {
	var all []string
	for i, t := range texts {
		all = append(all, candidate(quote(t), "", i+1))
	}
	return append(all, candidate(`""`, `"finishReason":"STOP",`, len(texts)))
}

func candidate(text, finish string, tokens int) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"},%s"index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":%q,"responseId":"fake"}`,
		text, finish, fakePrompt, tokens, fakePrompt+tokens, fakeModel)
}

func geminiBody(texts ...string) string {
	return candidate(quote(texts...), `"finishReason":"STOP",`, len(texts))
}
