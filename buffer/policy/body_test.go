package policy

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

// awsMessage is one message with string headers, given as name and value in turn.
func awsMessage(payload string, header ...string) string {
	var h []byte
	for i := 0; i+1 < len(header); i += 2 {
		h = append(append(h, byte(len(header[i]))), header[i]...)
		h = binary.BigEndian.AppendUint16(append(h, 7), uint16(len(header[i+1])))
		h = append(h, header[i+1]...)
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(awsPrelude+len(h)+len(payload)+awsTrailer))
	m = binary.BigEndian.AppendUint32(m, uint32(len(h)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, h...), payload...)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

func TestClassify_FindsTheErrorInAnyFraming(t *testing.T) {
	const rate = `{"error":{"code":"rate_limit_exceeded"}}`
	exception := func(name, payload string) string {
		return awsMessage(payload, ":message-type", "exception", ":exception-type", name)
	}
	inner := base64.StdEncoding.EncodeToString([]byte(`{"type":"error","error":{"type":"rate_limit_error"}}`))
	for _, c := range []struct {
		name, body string
		want       Class
	}{
		{"whole JSON", rate, Rate},
		{"the inner object alone", `{"type":"overloaded_error","message":"x"}`, Transient},
		{"BOM", "\xef\xbb\xbf" + rate, Rate},
		{"SSE", "data: " + rate + "\n\n", Rate},
		{"SSE, CRLF", "event: x\r\ndata: " + rate + "\r\n\r\n", Rate},
		{"SSE, CR", "data:" + rate + "\r\r", Rate},
		{"SSE, no blank line", "data: {}\n\ndata: " + rate, Rate},
		{"SSE, two data lines", "data: {\"error\":\ndata: {\"code\":\"rate_limit_exceeded\"}}\n\n", Rate},
		{"SSE, error event in words", "event: error\ndata: rate_limit_exceeded happened\n\n", Unknown},
		{"SSE, error event without a name for it", "event: error\ndata: {\"code\":\"rate_limit_exceeded\"}\n\n", Rate},
		{"SSE, the event's name is not kept", "event: error\n\ndata: {\"code\":\"rate_limit_exceeded\"}\n\n", Transient},
		{"SSE, flat", `data: {"type":"error","code":"rate_limit_exceeded","message":"x"}` + "\n\n", Rate},
		{"SSE, raw JSON tail", "data: {}\n\n{\n \"error\": {\n  \"code\": 429\n }\n}\n", Rate},
		{"SSE after raw JSON", "{\"a\":1}\ndata: " + rate + "\n\n", Rate},
		{"SSE, the second has the word", "data: {\"error\":{\"message\":\"x\"}}\n\ndata: " + rate + "\n\n", Rate},
		{"SSE, failed without an error", `data: {"type":"response.failed","response":{"error":null}}` + "\n\n", Transient},
		{"SSE, finish_reason", `data: {"choices":[{"finish_reason":"error"}]}` + "\n\n", Transient},
		{"SSE, an error in the choice", `data: {"choices":[{"finish_reason":"error","error":{"code":429}}]}` + "\n\n", Rate},
		{"SSE, comments only", ": x\n\n: error\n\n", Transient},
		{"NDJSON", "{\"done\":false}\n" + rate + "\n", Rate},
		{"array", "[{\"candidates\":[]}\n,\r\n" + rate + "\n]", Rate},
		{"array of one", "[" + rate + "]", Rate},
		{"exception", awsMessage(`{}`, ":message-type", "event") + exception("throttlingException", `{"message":"x"}`), Rate},
		{"exception, wrapped 429", exception("modelStreamErrorException", `{"originalStatusCode":429}`), Rate},
		{"exception, wrapped 400", exception("modelStreamErrorException", `{"originalStatusCode":400}`), Request},
		{"exception, wrapped 500", exception("modelStreamErrorException", `{"originalStatusCode":500}`), Transient},
		{"exception, nothing wrapped", exception("modelStreamErrorException", ``), Transient},
		{"error message", awsMessage("", ":message-type", "error", ":error-code", "InternalServerError", ":error-message", "x"), Transient},
		{"invoke", awsMessage(`{"bytes":"`+inner+`"}`, ":message-type", "event", ":event-type", "chunk"), Rate},
		{"no error: null", `data: {"error":null,"choices":[]}` + "\n\n", Transient},
		{"no error: empty", `data: {"error":{ },"choices":[]}` + "\n\n", Transient},
		{"no error: in the text", `data: {"choices":[{"delta":{"content":"{\"error\":{\"code\":\"content_filter\"}}"}}]}` + "\n\n", Transient},
		{"no error: a message", `{"type":"message","message":"rate_limit_exceeded"}`, Transient},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := Classify(answer(200, c.body)); v.Class != c.want {
				t.Errorf("class %q, want %q: %+v", v.Class, c.want, v)
			}
		})
	}
}

func TestClassify_BrokenEventStream(t *testing.T) {
	whole := awsMessage(`{"message":"x"}`, ":message-type", "exception", ":exception-type", "throttlingException")
	for n := range len(whole) {
		if v := Classify(answer(200, whole[:n])); v.Class != Transient || v.InBand {
			t.Fatalf("cut at %d: %+v", n, v)
		}
	}
}

func TestClassify_HostileBodies(t *testing.T) {
	const n = 128 << 10
	for name, body := range map[string]string{
		"deep arrays":       `{"error":{"details":` + strings.Repeat("[", n),
		"deep objects":      strings.Repeat(`{"error":`, n/8),
		"many errors":       strings.Repeat("data: {\"error\":{\"code\":\"x\"}}\n\n", n/32),
		"many details":      `{"error":{"details":[` + strings.Repeat(`{"reason":"x"},`, n/16) + `]}}`,
		"one long line":     "data: " + strings.Repeat("x", n),
		"many data lines":   strings.Repeat("data: {\n", n/8),
		"unclosed objects":  strings.Repeat("{\n", n/2),
		"brackets":          strings.Repeat("[\n", n/2),
		"long word":         `{"error":{"code":"` + strings.Repeat("x", n) + `"}}`,
		"long message":      `{"error":{"message":"` + strings.Repeat("try again in ", n/16) + `"}}`,
		"huge number":       `{"error":{"code":` + strings.Repeat("9", n) + `}}`,
		"quotes":            strings.Repeat(`{"`, n/2),
		"length of a giant": "\xff\xff\xff\xff\xff\xff\xff\xff\xde\xad\xbe\xef",
	} {
		t.Run(name, func(t *testing.T) {
			for _, status := range []int{200, 500} {
				v := Classify(answer(status, body))
				if v.Class != Unknown && v.Class != Transient {
					t.Errorf("status %d: class %q", status, v.Class)
				}
				if len(v.Code) > 128 || len(v.Message) > 512 {
					t.Errorf("status %d: %d bytes of code, %d of message", status, len(v.Code), len(v.Message))
				}
			}
		})
	}
}
