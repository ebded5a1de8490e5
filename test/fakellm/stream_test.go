package fakellm_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// sseData returns the data of each event, which must all have one data line and the given ending.
func sseData(t *testing.T, events [][]byte, end string) []string {
	t.Helper()
	var all []string
	for _, e := range events {
		text, ok := strings.CutSuffix(string(e), end)
		_, data, found := strings.Cut("\n"+text, "\ndata: ")
		if !ok || !found || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", e)
		}
		if data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Fatalf("not JSON: %s", data)
		}
		all = append(all, data)
	}
	return all
}

func TestChat_HasRoleTextsFinishUsageDone(t *testing.T) {
	data := sseData(t, fakellm.Chat("a\n", `"b"`), "\n\n")
	for i, want := range []string{`"role":"assistant"`, `"content":"a\n"`, `"content":"\"b\""`, `"finish_reason":"stop"`, `"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`, "[DONE]"} {
		if i >= len(data) || !strings.Contains(data[i], want) {
			t.Errorf("event %d: %s not in %q", i, want, data)
		}
	}
	sseData(t, fakellm.Completions("a"), "\n\n")
}

func TestResponses_CountItsSequence(t *testing.T) {
	events := fakellm.Responses("a", "b")
	for i, data := range sseData(t, events, "\n\n") {
		var e struct {
			Type string
			Seq  *int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Seq == nil || *e.Seq != i {
			t.Errorf("event %d: %s", i, data)
		}
		if !strings.HasPrefix(string(events[i]), "event: "+e.Type+"\n") {
			t.Errorf("event %d: name and type differ: %s", i, events[i])
		}
	}
	if !strings.HasPrefix(string(events[0]), "event: response.created\n") || !strings.HasPrefix(string(events[len(events)-1]), "event: response.completed\n") {
		t.Errorf("from %s to %s", events[0], events[len(events)-1])
	}
}

func TestMessages_GoFromStartToStop(t *testing.T) {
	var names []string
	events := fakellm.Messages("a", "b")
	sseData(t, events, "\n\n")
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(e), "event: "), "\n")
		names = append(names, name)
	}
	want := "message_start content_block_start ping content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s", got)
	}
}

func TestGemini_IsOneSequenceInTwoFramings(t *testing.T) {
	data := sseData(t, fakellm.GeminiSSE("a", "b"), "\r\n\r\n")
	var array []json.RawMessage
	if err := json.Unmarshal([]byte(join(fakellm.GeminiArray("a", "b"))), &array); err != nil {
		t.Fatal(err)
	}
	if len(array) != len(data) || !strings.Contains(data[len(data)-1], `"finishReason":"STOP"`) {
		t.Fatalf("got %d and %d elements", len(array), len(data))
	}
	for i := range data {
		if string(array[i]) != data[i] {
			t.Errorf("element %d: %s and %s", i, array[i], data[i])
		}
	}
}

func TestOllama_IsALineToAnEvent(t *testing.T) {
	for _, events := range [][][]byte{fakellm.OllamaChat("a", "b"), fakellm.OllamaGenerate("a", "b")} {
		for i, e := range events {
			var line struct{ Done *bool }
			if err := json.Unmarshal(e, &line); err != nil || line.Done == nil || *line.Done != (i == len(events)-1) || bytes.IndexByte(e, '\n') != len(e)-1 {
				t.Errorf("line %d: %s", i, e)
			}
		}
	}
}

func TestAWSMessage_IsTheSmallestThereIs(t *testing.T) {
	if got := hex.EncodeToString(fakellm.AWSMessage(nil, nil)); got != "000000100000000005c248eb7d98c8ff" {
		t.Errorf("got %s", got)
	}
}

func TestBedrock_MessagesHaveTheirLengthsAndSums(t *testing.T) {
	for name, events := range map[string][][]byte{
		"converse": fakellm.Converse("a", "b"), "invoke": fakellm.Invoke("a"), "exception": {fakellm.AWSException("throttlingException", "slow")},
	} {
		for i, e := range events {
			payload := awsPayload(t, e)
			if !json.Valid(payload) {
				t.Errorf("%s %d: payload %q", name, i, payload)
			}
		}
	}
	var chunk struct{ Bytes string }
	if err := json.Unmarshal(awsPayload(t, fakellm.Invoke("a")[0]), &chunk); err != nil {
		t.Fatal(err)
	}
	if inner, err := base64.StdEncoding.DecodeString(chunk.Bytes); err != nil || !strings.Contains(string(inner), `"message_start"`) {
		t.Errorf("got %q %v", inner, err)
	}
}

func awsPayload(t *testing.T, m []byte) []byte {
	t.Helper()
	n := len(m)
	if n < 16 || int(binary.BigEndian.Uint32(m)) != n || binary.BigEndian.Uint32(m[8:]) != crc32.ChecksumIEEE(m[:8]) ||
		binary.BigEndian.Uint32(m[n-4:]) != crc32.ChecksumIEEE(m[:n-4]) {
		t.Fatalf("not a message: %x", m)
	}
	return m[12+binary.BigEndian.Uint32(m[4:]) : n-4]
}

func TestServer_AnswersEveryGenerationCallInItsDialect(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{Text: "one two"})
	c := client(t, nil)
	words := []string{"one ", "two"}
	stream := func(events [][]byte) string { return join(events) }
	for _, tt := range []struct{ name, path, body, contentType, want string }{
		{"chat", "/v1/chat/completions", `{"stream":true}`, "text/event-stream; charset=utf-8", stream(fakellm.Chat(words...))},
		{"chat of another provider", "/primary/openai/deployments/x/chat/completions?v=1", `{"stream":true}`, "text/event-stream; charset=utf-8", stream(fakellm.Chat(words...))},
		{"completions", "/v1/completions", `{"stream":true}`, "text/event-stream; charset=utf-8", stream(fakellm.Completions(words...))},
		{"responses", "/v1/responses", `{"stream":true}`, "text/event-stream; charset=utf-8", stream(fakellm.Responses(words...))},
		{"messages", "/v1/messages", `{"stream":true}`, "text/event-stream; charset=utf-8", stream(fakellm.Messages(words...))},
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{}`, "text/event-stream", stream(fakellm.GeminiSSE(words...))},
		{"gemini array", "/v1beta/models/m:streamGenerateContent", `{}`, "application/json", stream(fakellm.GeminiArray(words...))},
		{"converse", "/model/a%2Fb/converse-stream", `{}`, "application/vnd.amazon.eventstream", stream(fakellm.Converse(words...))},
		{"invoke", "/model/x/invoke-with-response-stream", `{}`, "application/vnd.amazon.eventstream", stream(fakellm.Invoke(words...))},
		{"ollama chat", "/api/chat", `{}`, "application/x-ndjson", stream(fakellm.OllamaChat(words...))},
		{"ollama generate", "/api/generate", `{}`, "application/x-ndjson", stream(fakellm.OllamaGenerate(words...))},
		{"chat, whole", "/v1/chat/completions", `{}`, "application/json", ""},
		{"completions, whole", "/v1/completions", `{}`, "application/json", ""},
		{"responses, whole", "/v1/responses", `{"stream":false}`, "application/json", ""},
		{"messages, whole", "/v1/messages", `{}`, "application/json", ""},
		{"gemini, whole", "/v1beta/models/m:generateContent", `{}`, "application/json", ""},
		{"converse, whole", "/model/x/converse", `{}`, "application/json", ""},
		{"invoke, whole", "/model/x/invoke", `{}`, "application/json", ""},
		{"ollama chat, whole", "/api/chat", `{"stream":false}`, "application/json", ""},
		{"ollama generate, whole", "/api/generate", `{"stream":false}`, "application/json", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := post(t, c, srv.URL+tt.path, tt.body)
			if got.status != 200 || got.err != nil || got.header.Get("Content-Type") != tt.contentType {
				t.Fatalf("got %d %v %v", got.status, got.header, got.err)
			}
			if tt.want != "" && string(got.body) != tt.want {
				t.Errorf("got %s\nwant %s", got.body, tt.want)
			}
			if tt.want == "" && !(json.Valid(got.body) && strings.Contains(string(got.body), `"one two"`)) {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

func TestServer_ListsModelsAndRefusesTheRest(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	c := client(t, nil)
	for path, want := range map[string]int{"/v1/models": 200, "/primary/v1/models": 200, "/v1/messages": 404, "/": 404} {
		resp, err := c.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || !json.Valid(b) {
			t.Errorf("%s: %d %s %v", path, resp.StatusCode, b, err)
		}
	}
	if got := post(t, c, srv.URL+"/v1/files", "x"); got.status != http.StatusNotFound {
		t.Errorf("got %d", got.status)
	}
}
