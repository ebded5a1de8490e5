package provider

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

func TestErrorBody_Shapes(t *testing.T) {
	e := Error{Status: 422, Code: "key_reused", Message: `other "body"`}
	for d, want := range map[Dialect]string{
		OpenAIChat:      `{"error":{"message":"other \"body\"","type":"invalid_request_error","code":"key_reused","param":null}}`,
		OpenAIResponses: `{"error":{"message":"other \"body\"","type":"invalid_request_error","code":"key_reused","param":null}}`,
		Generic:         `{"error":{"message":"other \"body\"","type":"invalid_request_error","code":"key_reused","param":null}}`,
		Anthropic:       `{"type":"error","error":{"type":"invalid_request_error","message":"other \"body\"","code":"key_reused"}}`,
		Gemini:          `{"error":{"code":422,"message":"other \"body\"","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"key_reused","domain":"spool"}]}}`,
		Bedrock:         `{"__type":"ValidationException","message":"key_reused: other \"body\""}`,
		Ollama:          `{"error":"key_reused: other \"body\""}`,
	} {
		t.Run(string(d), func(t *testing.T) {
			if got := string(ErrorBody(d, e)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestErrorBody_IsReadAsAnError(t *testing.T) {
	for _, d := range []Dialect{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, BedrockInvoke, Ollama} {
		for _, status := range []int{400, 404, 429, 502, 503, 504} {
			r := NewReader(d, frame.Whole, false)
			if m := r.Read(ErrorBody(d, Error{Status: status, Code: "busy", Message: "wait"})); !m.Failed {
				t.Errorf("%s, %d: %+v", d, status, m)
			}
		}
	}
}

func TestErrorBody_Types(t *testing.T) {
	for _, row := range []struct {
		dialect Dialect
		e       Error
		want    string
	}{
		{OpenAIChat, Error{Status: 502}, "server_error"},
		{OpenAIChat, Error{Status: 429}, "rate_limit_error"},
		{OpenAIChat, Error{Status: 429, Type: "own"}, "own"},
		{Anthropic, Error{Status: 529}, "overloaded_error"},
		{Gemini, Error{Status: 429}, "RESOURCE_EXHAUSTED"},
		{Bedrock, Error{Status: 429}, "ThrottlingException"},
	} {
		if got := ErrorBody(row.dialect, row.e); !bytes.Contains(got, []byte(`"`+row.want+`"`)) {
			t.Errorf("%s, %+v: %s", row.dialect, row.e, got)
		}
	}
}

func TestInterruption_EachDialect(t *testing.T) {
	cut := Cut{RunID: "01J", Reason: "eof_without_end", Next: 12, Sequence: 7}
	const message = `run 01J was interrupted: eof_without_end; next position 12`
	for _, row := range []struct {
		dialect Dialect
		kind    frame.Kind
		want    string
	}{
		{OpenAIChat, frame.SSE, `data: {"error":{"message":"` + message + `","type":"spool_interrupted","code":"eof_without_end","param":null}}` + "\n\n"},
		{OpenAIResponses, frame.SSE, "event: error\n" + `data: {"type":"error","sequence_number":7,"code":"eof_without_end","message":"` + message + `","param":null,"error":{"type":"spool_interrupted","code":"eof_without_end","message":"` + message + `"}}` + "\n\n"},
		{Anthropic, frame.SSE, "event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"` + message + `"}}` + "\n\n"},
		{Gemini, frame.SSE, `data: {"error":{"code":502,"status":"UNAVAILABLE","message":"` + message + `"}}` + "\r\n\r\n"},
		{Ollama, frame.NDJSON, `{"error":"` + message + `"}` + "\n"},
		{Gemini, frame.JSONArray, ""},
		{Generic, frame.SSE, ""},
		{OpenAIChat, frame.Opaque, ""},
		{OpenAIChat, frame.Whole, ""},
	} {
		t.Run(string(row.dialect)+" "+string(row.kind), func(t *testing.T) {
			got := Interruption(row.dialect, row.kind, cut)
			if string(got) != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if got == nil {
				return
			}
			if m := NewReader(row.dialect, row.kind, true).Read(got); !m.Failed {
				t.Errorf("is read as %+v", m)
			}
		})
	}
}

func TestInterruption_AWSIsOneMessage(t *testing.T) {
	got := Interruption(Bedrock, frame.AWS, Cut{RunID: "01J", Reason: "stalled", Next: 3})
	s := frame.NewScanner(bytes.NewReader(got), frame.AWS, 0)
	chunk, err := s.Next()
	if err != nil || !bytes.Equal(chunk, got) {
		t.Fatalf("%q, %v", chunk, err)
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("more follows: %v", err)
	}
	m, ok := parseMessage(got)
	if !ok || m.kind != "exception" || m.event != "modelStreamErrorException" {
		t.Errorf("message %+v", m)
	}
	if want := `{"message":"run 01J was interrupted: stalled; next position 3"}`; string(m.payload) != want {
		t.Errorf("payload %s", m.payload)
	}
}

// TestAppendMessage_Smallest holds the writer to the message of docs/providers.md, section 1.
func TestAppendMessage_Smallest(t *testing.T) {
	want := []byte{0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff}
	if got := appendMessage(nil, nil); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestHeartbeat_OnlyWhereSafe(t *testing.T) {
	for _, d := range []Dialect{OpenAIChat, OpenAIResponses, Anthropic} {
		if got := string(Heartbeat(d, frame.SSE)); got != ": hb\n" {
			t.Errorf("%s: %q", d, got)
		}
		if got := Heartbeat(d, frame.Whole); got != nil {
			t.Errorf("%s, whole: %q", d, got)
		}
	}
	for _, d := range []Dialect{Gemini, Bedrock, BedrockInvoke, Ollama, Generic} {
		if got := Heartbeat(d, frame.SSE); got != nil {
			t.Errorf("%s: %q", d, got)
		}
	}
}

func TestSequenceNumber_OfAnEvent(t *testing.T) {
	for chunk, want := range map[string]int64{
		event("response.created", `,"sequence_number":0`):    0,
		event("response.completed", `,"sequence_number":41`): 41,
		"data:{\"sequence_number\": 7}\r\n\r\n":              7,
		event("response.created", ""):                        -1,
		event("response.created", `,"sequence_number":"1"`):  -1,
		event("response.created", `,"sequence_number":-1`):   -1,
		event("response.created", `,"sequence_number":1.5`):  -1,
		": comment\n\n":    -1,
		"data: [DONE]\n\n": -1,
		"":                 -1,
	} {
		n, ok := SequenceNumber([]byte(chunk))
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v, want %d", chunk, n, ok, want)
		}
	}
}
