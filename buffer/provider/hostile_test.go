package provider

import (
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

var (
	allDialects = []Dialect{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, BedrockInvoke, Ollama, Generic}
	allKinds    = []frame.Kind{frame.SSE, frame.NDJSON, frame.JSONArray, frame.AWS, frame.Opaque, frame.Whole}
)

// hostile are events that are within the limit of a chunk and made to cost. One that is read in the
// square of its length, or by a function that calls itself for each bracket, ends this test by its
// time or its stack.
func hostile() map[string]string {
	const size, deep, lines = 64 << 10, 8 << 20, 1 << 20
	return map[string]string{
		"brackets":      strings.Repeat("[", deep),
		"objects":       strings.Repeat(`{"a":`, size/5),
		"closed":        strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"in an error":   `{"error":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + "}",
		"CR lines":      strings.Repeat("a\r", lines/2),
		"LF lines":      strings.Repeat("a\n", lines/2),
		"CR data lines": strings.Repeat("data:\r", lines/6),
		"quotes":        strings.Repeat(`"`, size),
		"backslashes":   `{"a":"` + strings.Repeat(`\\`, size/2) + `"}`,
		"NULs":          strings.Repeat("\x00", size),
		"choices":       `{"choices":[` + strings.Repeat(`{"delta":{"a":""}},`, size/19) + `{}]}`,
		"keys":          `{` + strings.Repeat(`"error":null,`, size/13) + `"a":1}`,
	}
}

func TestReader_EventsMadeToCostAreRead(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, d := range allDialects { // each framing with some dialects: what they share is read in each
				k := allKinds[i%len(allKinds)]
				for _, chunk := range []string{text, "data: " + text + "\n\n"} {
					r := NewReader(d, k, true)
					r.Read([]byte(chunk))
					if v := r.Verdict(false); v.Proven {
						t.Errorf("%s, %s: it proves its end", d, k)
					}
				}
			}
			SequenceNumber([]byte("data: " + text + "\n\n"))
		})
	}
}

// What a caller sends is looked into before it is anybody's run. What is found does not matter here.
func TestRequest_BodiesMadeToCostAreRead(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{text, `{"tools":` + text, `{"model":` + text} {
				for _, d := range allDialects {
					Model(d, "/v1/x", []byte(body))
					HostedTools(d, []byte(body))
					AsksForStream(d, "/v1/x", []byte(body))
					NeedsOf(d, []byte(body))
				}
			}
		})
	}
}

// A value that nests deeper than anybody reads is content like any payload that is not known, or is
// held like half an answer; it proves nothing.
func TestReader_DeepNestingIsNoJSON(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	if valid(deep) {
		t.Error("20000 brackets are valid")
	}
	if flat := strings.Repeat(" ", maxRecursive) + strings.Repeat("[", 100) + strings.Repeat("]", 100); !valid(flat) {
		t.Error("100 brackets in a long text are not")
	}
	checkAll(t, OpenAIChat, []reading{
		{name: "event", chunks: []string{"data: " + deep + "\n\n"}, marks: "c", clean: "proven proof_weak", cut: "open"},
		{name: "before [DONE]", chunks: []string{"data: " + deep + "\n\n", "data: [DONE]\n\n"}, marks: "c F", clean: "proven proof_weak", cut: "proven proof_weak"},
	})
}
