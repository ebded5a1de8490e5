package fakellm

import "fmt"

// Chat is an OpenAI chat completion: the role, the texts, the finish, the usage, [DONE].
func Chat(texts ...string) [][]byte {
	events := [][]byte{chatChunk(`{"role":"assistant","content":""}`, "null")}
	for _, t := range texts {
		events = append(events, chatChunk(`{"content":`+quote(t)+`}`, "null"))
	}
	return append(events,
		chatChunk(`{}`, `"stop"`),
		sse("", `{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":%d,"model":%q,"choices":[],"usage":%s}`,
			fakeCreated, fakeModel, chatUsage(len(texts))),
		sse("", "[DONE]"),
	)
}

func chatChunk(delta, finish string) []byte {
	return sse("", `{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":%d,"model":%q,"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`,
		fakeCreated, fakeModel, delta, finish)
}

func chatUsage(tokens int) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, fakePrompt, tokens, fakePrompt+tokens)
}

// chatBody is the same answer where no stream is asked for.
func chatBody(texts ...string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion","created":%d,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":%s}`,
		fakeCreated, fakeModel, quote(texts...), chatUsage(len(texts)))
}

// Completions is an OpenAI legacy completion.
func Completions(texts ...string) [][]byte {
	var events [][]byte
	for _, t := range texts {
		events = append(events, sse("", "%s", completion(quote(t), "null", "null")))
	}
	return append(events, sse("", "%s", completion(`""`, `"stop"`, chatUsage(len(texts)))), sse("", "[DONE]"))
}

func completion(text, finish, usage string) string {
	return fmt.Sprintf(`{"id":"cmpl-fake","object":"text_completion","created":%d,"model":%q,"choices":[{"index":0,"text":%s,"logprobs":null,"finish_reason":%s}],"usage":%s}`,
		fakeCreated, fakeModel, text, finish, usage)
}

func completionsBody(texts ...string) string {
	return completion(quote(texts...), `"stop"`, chatUsage(len(texts)))
}

// Responses is a stream of the OpenAI Responses API, its sequence numbers from response.created to
// response.completed.
func Responses(texts ...string) [][]byte {
	var events [][]byte
	add := func(kind, fields string) {
		events = append(events, sse(kind, `{"type":%q,"sequence_number":%d,%s}`, kind, len(events), fields))
	}
	const at = `"item_id":"msg_fake","output_index":0,"content_index":0,`
	add("response.created", `"response":`+response("in_progress", "", "null"))
	add("response.in_progress", `"response":`+response("in_progress", "", "null"))
	add("response.output_item.added", `"output_index":0,"item":`+responseItem("in_progress", ""))
	add("response.content_part.added", at+`"part":`+responsePart(`""`))
	for _, t := range texts {
		add("response.output_text.delta", at+`"delta":`+quote(t)+`,"logprobs":[]`)
	}
	item := responseItem("completed", responsePart(quote(texts...)))
	add("response.output_text.done", at+`"text":`+quote(texts...)+`,"logprobs":[]`)
	add("response.content_part.done", at+`"part":`+responsePart(quote(texts...)))
	add("response.output_item.done", `"output_index":0,"item":`+item)
	add("response.completed", `"response":`+response("completed", item, responseUsage(len(texts))))
	return events
}

func responsesBody(texts ...string) string {
	return response("completed", responseItem("completed", responsePart(quote(texts...))), responseUsage(len(texts)))
}

func response(status, output, usage string) string {
	return fmt.Sprintf(`{"id":"resp_fake","object":"response","created_at":%d,"status":%q,"error":null,"incomplete_details":null,`+
		`"instructions":null,"metadata":{},"model":%q,"output":[%s],"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto",`+
		`"tools":[],"top_p":1,"usage":%s}`, fakeCreated, status, fakeModel, output, usage)
}

func responseItem(status, parts string) string {
	return fmt.Sprintf(`{"id":"msg_fake","type":"message","status":%q,"role":"assistant","content":[%s]}`, status, parts)
}

func responsePart(text string) string {
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + text + `}`
}

func responseUsage(tokens int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`,
		fakePrompt, tokens, fakePrompt+tokens)
}
