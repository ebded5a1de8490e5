package fakellm

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Converse is a Bedrock ConverseStream in AWS event stream messages.
func Converse(texts ...string) [][]byte {
	events := [][]byte{awsEvent("messageStart", `{"role":"assistant"}`)}
	for _, t := range texts {
		events = append(events, awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":`+quote(t)+`}}`))
	}
	return append(events,
		awsEvent("contentBlockStop", `{"contentBlockIndex":0}`),
		awsEvent("messageStop", `{"stopReason":"end_turn"}`),
		awsEvent("metadata", `{"metrics":{"latencyMs":1},"usage":`+converseUsage(len(texts))+`}`),
	)
}

func converseUsage(tokens int) string {
	return fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d}`, fakePrompt, tokens, fakePrompt+tokens)
}

func converseBody(texts ...string) string {
	return fmt.Sprintf(`{"metrics":{"latencyMs":1},"output":{"message":{"content":[{"text":%s}],"role":"assistant"}},"stopReason":"end_turn","usage":%s}`,
		quote(texts...), converseUsage(len(texts)))
}

// Invoke is a Bedrock InvokeModelWithResponseStream of an Anthropic model: its events in base64.
func Invoke(texts ...string) [][]byte {
	var events [][]byte
	for _, m := range messages(texts) {
		events = append(events, awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(m.data))+`"}`))
	}
	return events
}

func awsEvent(kind, payload string) []byte {
	return AWSMessage([][2]string{{":event-type", kind}, {":content-type", "application/json"}, {":message-type", "event"}}, []byte(payload))
}

// AWSException is the message with which Bedrock fails in the middle of a stream.
func AWSException(kind, text string) []byte {
	return AWSMessage([][2]string{{":exception-type", kind}, {":content-type", "application/json"}, {":message-type", "exception"}},
		[]byte(`{"message":`+quote(text)+`}`))
}

// AWSMessage is one message of an AWS event stream with string headers: the lengths and their CRC,
// headers, payload, the CRC of all before it. Names have at most 255 bytes, values 65,535.
func AWSMessage(headers [][2]string, payload []byte) []byte {
	const stringValue = 7
	var h []byte
	for _, kv := range headers {
		h = append(h, byte(len(kv[0])))
		h = append(h, kv[0]...)
		h = append(h, stringValue)
		h = binary.BigEndian.AppendUint16(h, uint16(len(kv[1])))
		h = append(h, kv[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, h...)
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
