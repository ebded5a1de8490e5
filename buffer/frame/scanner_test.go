package frame_test

import (
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// smallestMessage has no headers and no payload.
const smallestMessage = "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff"

// bodies are small bodies, as the chunks that they must be cut into. partial is what is left.
var bodies = []struct {
	name    string
	kind    frame.Kind
	chunks  []string
	partial string
}{
	{"sse: event and DONE", frame.SSE, []string{"data: {\"a\":1}\n\n", "data: [DONE]\n\n"}, ""},
	{"sse: CRLF", frame.SSE, []string{"event: x\r\ndata: {\"a\":1}\n\r\n"}, ""},
	{"sse: comment block", frame.SSE, []string{": OPENROUTER PROCESSING\n\n", "data: {\"a\":1}\n\n"}, ""},
	{"sse: comment line", frame.SSE, []string{": hb\ndata: {\"a\":1}\n\n"}, ""},
	{"sse: retry block", frame.SSE, []string{"retry: 5\n\n", "data: 1\n\n"}, ""},
	{"sse: LF LF", frame.SSE, []string{"a\n\n", "b\n\n"}, ""},
	{"sse: CRLF CRLF", frame.SSE, []string{"a\r\n\r\n", "b\r\n\r\n"}, ""},
	{"sse: CR CR", frame.SSE, []string{"a\r\r", "b\r\r"}, ""},
	{"sse: LF CRLF", frame.SSE, []string{"a\n\r\n", "b\n\r\n"}, ""},
	{"sse: CRLF LF", frame.SSE, []string{"a\r\n\n", "b\r\n\n"}, ""},
	{"sse: CRLF CR", frame.SSE, []string{"a\r\n\r", "b\r\n\r"}, ""},
	{"sse: LF CR", frame.SSE, []string{"a\n\r", "b\n\r"}, ""},
	{"sse: CR CRLF", frame.SSE, []string{"a\r\r\n", "b\r\r\n"}, ""},
	{"sse: single line ends", frame.SSE, []string{"a\nb\r\nc\rd\n\n"}, ""},
	{"sse: three LF", frame.SSE, []string{"a\n\n", "\nb\n\n"}, ""},
	{"sse: three LF alone", frame.SSE, []string{"\n\n", "\n"}, ""},
	{"sse: four LF", frame.SSE, []string{"\n\n", "\n\n"}, ""},
	{"sse: three CR", frame.SSE, []string{"a\r\r", "\rb\n\n"}, ""},
	{"sse: four CR", frame.SSE, []string{"\r\r", "\r\r"}, ""},
	{"sse: three CRLF", frame.SSE, []string{"\r\n\r\n", "\r\n"}, ""},
	{"sse: byte order mark", frame.SSE, []string{"\ufeffdata: 1\n\n", "data: 2\n\n"}, ""},
	{"sse: broken UTF-8", frame.SSE, []string{"data: \xe2\x82\n\n", "data: \xac\n\n"}, ""},
	{"sse: empty", frame.SSE, nil, ""},

	{"sse tail: JSON", frame.SSE, []string{"data: 1\n\n", "data: {\"a\":1}"}, ""},
	{"sse tail: JSON and line end", frame.SSE, []string{"event: x\ndata: {\"a\":1}\n"}, ""},
	{"sse tail: JSON on two lines", frame.SSE, []string{"data: {\"a\":\r\ndata:1}\r\n"}, ""},
	{"sse tail: DONE", frame.SSE, []string{"data: [DONE]"}, ""},
	{"sse tail: DONE without a space", frame.SSE, []string{"data:[DONE]\r\n"}, ""},
	{"sse tail: comment", frame.SSE, []string{": hb\n"}, ""},
	{"sse tail: blank", frame.SSE, []string{"data: 1\n\n", "\n"}, ""},
	{"sse tail: spaces", frame.SSE, []string{"data: 1\n\n", " \t"}, ""},
	{"sse tail: bare JSON", frame.SSE, []string{"data: 1\n\n", "{\"error\":\n{\"code\":503}}\n"}, ""},
	{"sse tail: broken data that CR ended", frame.SSE, []string{"data: {\"a\":\r\r"}, ""},
	{"sse tail: byte order mark", frame.SSE, []string{"\ufeffdata: [DONE]\n"}, ""},
	{"sse tail: half an event", frame.SSE, []string{"data: 1\n\n"}, "data: {\"a\":"},
	{"sse tail: event name alone", frame.SSE, nil, "event: x\n"},
	{"sse tail: half a name", frame.SSE, nil, "da"},
	{"sse tail: no data yet", frame.SSE, nil, "data:"},
	{"sse tail: half a comment", frame.SSE, nil, ": OPENROUTER PROC"},
	{"sse tail: text", frame.SSE, nil, "data: hello\n"},
	{"sse tail: half of bare JSON", frame.SSE, nil, "{\"error\":{"},

	{"ndjson: error", frame.NDJSON, []string{"{\"response\":\"a\",\"done\":false}\n", "{\"error\":\"boom\"}\n"}, ""},
	{"ndjson: blank line", frame.NDJSON, []string{"1\r\n", "\n", "\r\n", "2\n"}, ""},
	{"ndjson: CR is no end", frame.NDJSON, []string{"1\r2\n"}, ""},
	{"ndjson tail: JSON", frame.NDJSON, []string{"1\n", "{\"done\":true}"}, ""},
	{"ndjson tail: blank", frame.NDJSON, []string{"1\n", " "}, ""},
	{"ndjson tail: half", frame.NDJSON, []string{"1\n"}, "{\"done\":tr"},
	{"ndjson: empty", frame.NDJSON, nil, ""},

	{"array: two elements", frame.JSONArray, []string{"[{\"a\":1}", "\n,\r\n{\"a\":2}\n]"}, ""},
	{"array: space before and after", frame.JSONArray, []string{" \n[ 1", " , 2 ]", "\r\n"}, ""},
	{"array: scalars", frame.JSONArray, []string{"[-1.5e3", ",true", ",null", ",\"x\"", ", 7]"}, ""},
	{"array: nested", frame.JSONArray, []string{"[[1,2,[3]]", ",{\"a\":[{},{}],\"b\":{\"c\":[]}}]"}, ""},
	{"array: strings", frame.JSONArray, []string{`[{"a":"],[{\"\\"}`, `,"\\"`, `,"\"],"`, `,{"\\\"":1}]`}, ""},
	{"array: empty", frame.JSONArray, []string{"[]"}, ""},
	{"array: empty with space", frame.JSONArray, []string{"[ \n]", "\n"}, ""},
	{"array: byte order mark", frame.JSONArray, []string{"\ufeff[1", ",2]"}, ""},
	{"array tail: complete element", frame.JSONArray, []string{"[{\"a\":1}", ",{\"a\":2}"}, ""},
	{"array tail: first element", frame.JSONArray, []string{" [[1]\n"}, ""},
	{"array tail: half an element", frame.JSONArray, []string{"[{\"a\":1}"}, "\n,{\"a\":\"]"},
	{"array tail: comma", frame.JSONArray, []string{"[1"}, ",\n"},
	{"array tail: bracket", frame.JSONArray, nil, "["},
	{"array tail: after the array", frame.JSONArray, []string{"[1]", "\n{\"b\":2}"}, ""},
	{"array tail: broken after the array", frame.JSONArray, []string{"[1]"}, "\n{\"b\":"},
	{"array: it is an object", frame.JSONArray, []string{"{\"error\":[1,2]}\n"}, ""},
	{"array: it is a page", frame.JSONArray, []string{"\n<html>[1,2]</html>"}, ""},
	{"array: only space", frame.JSONArray, []string{" \n"}, ""},
	{"array: nothing", frame.JSONArray, nil, ""},

	{"aws: smallest", frame.AWS, []string{smallestMessage, smallestMessage}, ""},
	{"aws: half", frame.AWS, []string{smallestMessage}, smallestMessage[:15]},
	{"aws: half a prelude", frame.AWS, []string{smallestMessage}, smallestMessage[:7]},
	{"aws: empty", frame.AWS, nil, ""},

	{"whole: lines", frame.Whole, []string{"{\"a\":1}\n\n{\"b\":"}, ""},
	{"whole: empty", frame.Whole, nil, ""},
	{"opaque: one read", frame.Opaque, []string{"a\n\nb\n\n"}, ""},
	{"opaque: empty", frame.Opaque, nil, ""},
}

func TestScanner_CutsEachFraming(t *testing.T) {
	for _, tt := range bodies {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(strings.Join(tt.chunks, "") + tt.partial)
			want := outcome{tt.chunks, tt.partial, io.EOF}
			wantSame(t, "at once", scan(t, &script{data: data}, tt.kind, 0), want)
			wantSame(t, "the end with the bytes", scan(t, &script{data: data, endWith: true}, tt.kind, 0), want)
			if tt.kind != frame.Opaque {
				wantSame(t, "byte by byte", scan(t, &script{data: data, size: bySize(1)}, tt.kind, 0), want)
			}
		})
	}
}

func TestScanner_SmallestMessageIsTheDocumentedOne(t *testing.T) {
	if got := hex.EncodeToString([]byte(smallestMessage)); got != "000000100000000005c248eb7d98c8ff" {
		t.Fatal(got)
	}
}

func TestScanner_OpaqueGivesEachRead(t *testing.T) {
	r := &script{data: []byte("abcdefgh"), size: bySize(3), endWith: true}
	wantSame(t, "reads of 3", scan(t, r, frame.Opaque, 0), outcome{[]string{"abc", "def", "gh"}, "", io.EOF})

	r = &script{data: []byte("abcdefgh")}
	wantSame(t, "limit of 5", scan(t, r, frame.Opaque, 5), outcome{[]string{"abcde", "fgh"}, "", io.EOF})
}

func TestScanner_GivesAllBeforeAReadError(t *testing.T) {
	tests := []struct {
		name    string
		kind    frame.Kind
		chunks  []string
		partial string
	}{
		{"sse", frame.SSE, []string{"data: 1\n\n"}, "data: {"},
		{"sse, tail parses", frame.SSE, []string{"data: 1\n\n", "data: {}\n"}, ""},
		{"sse, CR ended it", frame.SSE, []string{"data: {\r\r"}, ""},
		{"ndjson", frame.NDJSON, []string{"1\n"}, "{"},
		{"array", frame.JSONArray, []string{"[1"}, ",{"},
		{"no array", frame.JSONArray, nil, "{\"a\":1"},
		{"aws", frame.AWS, []string{smallestMessage}, "\x00"},
		{"whole", frame.Whole, nil, "{\"a\":1}"},
		{"opaque", frame.Opaque, []string{"abc"}, ""},
		{"nothing came", frame.Whole, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(strings.Join(tt.chunks, "") + tt.partial)
			want := outcome{tt.chunks, tt.partial, errReset}
			wantSame(t, "after the bytes", scan(t, &script{data: data, end: errReset}, tt.kind, 0), want)
			wantSame(t, "with the bytes", scan(t, &script{data: data, end: errReset, endWith: true}, tt.kind, 0), want)
		})
	}
}

func TestScanner_StopsAtTheLimit(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		name   string
		kind   frame.Kind
		limit  int
		body   string
		chunks []string
		err    error
	}{
		{"sse, at the limit", frame.SSE, 3, "a\n\nb\r\r", []string{"a\n\n", "b\r\r"}, io.EOF},
		{"sse, CR at the limit", frame.SSE, 3, "b\r\rc\n\n", []string{"b\r\r", "c\n\n"}, io.EOF},
		{"sse, one over", frame.SSE, 3, "a\n\nbc\n\nd\n\n", []string{"a\n\n"}, frame.ErrTooLarge},
		{"sse, one over by the LF after CR", frame.SSE, 3, "b\r\r\n", nil, frame.ErrTooLarge},
		{"sse, no end", frame.SSE, 10, "a\n\n" + long, []string{"a\n\n"}, frame.ErrTooLarge},
		{"sse, tail at the limit", frame.SSE, 8, "data: {}", []string{"data: {}"}, io.EOF},
		{"ndjson", frame.NDJSON, 10, "1\n" + long + "\n2\n", []string{"1\n"}, frame.ErrTooLarge},
		{"array, at the limit", frame.JSONArray, 4, "[123,45]", []string{"[123", ",45]"}, io.EOF},
		{"array, element", frame.JSONArray, 10, "[1,\"" + long + "\",2]", []string{"[1"}, frame.ErrTooLarge},
		{"array, space", frame.JSONArray, 10, "[1" + strings.Repeat(" ", 20) + ",2]", nil, frame.ErrTooLarge},
		{"array, space after it", frame.JSONArray, 10, "[1]" + strings.Repeat(" ", 20), []string{"[1]"}, frame.ErrTooLarge},
		{"aws, by its prelude", frame.AWS, 15, smallestMessage[:12], nil, frame.ErrTooLarge},
		{"aws, at the limit", frame.AWS, 16, smallestMessage, []string{smallestMessage}, io.EOF},
		{"whole", frame.Whole, 99, long, nil, frame.ErrTooLarge},
		{"whole, at the limit", frame.Whole, 100, long, []string{long}, io.EOF},
		{"no limit to speak of", frame.SSE, math.MaxInt, "a\n\n", []string{"a\n\n"}, io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := outcome{tt.chunks, "", tt.err}
			wantSame(t, "at once", scan(t, &script{data: []byte(tt.body)}, tt.kind, tt.limit), want)
			wantSame(t, "byte by byte", scan(t, &script{data: []byte(tt.body), size: bySize(1)}, tt.kind, tt.limit), want)
		})
	}
}

func TestScanner_RefusesABadPrelude(t *testing.T) {
	tests := []struct{ name, message string }{
		{"checksum", "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xec\x7d\x98\xc8\xff"},
		{"length, so checksum", "\x00\x00\x00\x11\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff"},
		{"length of 15 with its checksum", "\x00\x00\x00\x0f\x00\x00\x00\x00\xe7\x72\x48\xb8"},
		{"text", "<html>no stream</html>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(smallestMessage + tt.message)
			for _, size := range []int{1, 12, len(data)} {
				got := scan(t, &script{data: data, size: bySize(size)}, frame.AWS, 0)
				wantSame(t, tt.name, got, outcome{[]string{smallestMessage}, "", frame.ErrCorrupt})
			}
		})
	}
}

func TestScanner_GivesUpOnAReaderWithoutProgress(t *testing.T) {
	stuck := func() int { return 0 }
	got := scan(t, &script{data: []byte("a\n\n"), size: stuck}, frame.SSE, 0)
	wantSame(t, "never a byte", got, outcome{nil, "", io.ErrNoProgress})

	reads := 0
	seldom := func() int { reads++; return max(0, reads%50-48) }
	got = scan(t, &script{data: []byte("a\n\nb\n\n"), size: seldom}, frame.SSE, 0)
	wantSame(t, "a byte in 50 reads", got, outcome{[]string{"a\n\n", "b\n\n"}, "", io.EOF})
}

func TestScanner_WrappedEOFIsAnError(t *testing.T) {
	cut := errors.Join(io.EOF)
	got := scan(t, &script{data: []byte("half"), end: cut}, frame.Whole, 0)
	wantSame(t, "wrapped", got, outcome{nil, "half", cut})
}
