package fakellm

import "fmt"

// message is one event of an Anthropic stream before it is framed.
type message struct{ name, data string }

func messages(texts []string) []message {
	events := []message{
		{"message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_fake","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, fakeModel, fakePrompt)},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
		{"ping", `{"type": "ping"}`},
	}
	for _, t := range texts {
		events = append(events, message{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quote(t) + `}}`})
	}
	return append(events,
		message{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		message{"message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, len(texts))},
		message{"message_stop", `{"type":"message_stop"}`},
	)
}

// Messages is an Anthropic stream: message_start, a ping, the texts, message_delta, message_stop.
func Messages(texts ...string) [][]byte {
	var events [][]byte
	for _, m := range messages(texts) {
		events = append(events, sse(m.name, "%s", m.data))
	}
	return events
}

func messagesBody(texts ...string) string {
	return fmt.Sprintf(`{"id":"msg_fake","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
		fakeModel, quote(texts...), fakePrompt, len(texts))
}
