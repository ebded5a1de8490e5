package provider

import (
	"encoding/json"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

func TestResponseObject_IsWhatTheProviderSent(t *testing.T) {
	const object = `{ "id":"resp_1", "object":"response","status":"queued", "n":1.0e2,"s":"\u00e9\/" }`
	for _, row := range []struct {
		name  string
		kind  frame.Kind
		chunk string
		want  string
	}{
		{"an event", frame.SSE, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":" + object + ",\"sequence_number\":0}\n\n", object},
		{"CRLF, a comment, no space", frame.SSE, ": hb\r\ndata:{\"response\":" + object + "}\r\n\r\n", object},
		{"data in two lines", frame.SSE, "data: {\"response\":\ndata: " + object + "}\n\n", object},
		{"two events in one block", frame.SSE, "data: {\"response\":{}}\ndata: {\"response\":" + object + "}\n\n", object},
		{"a body in a stream", frame.SSE, object + "\n", object + "\n"},
		{"a body", frame.Whole, "\n" + object, "\n" + object},
		{"a line", frame.NDJSON, "{\"response\":" + object + "}\n", object},
		{"a delta", frame.SSE, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\\"response\\\":{}\"}\n\n", ""},
		{"a response deeper down", frame.SSE, "data: {\"item\":{\"response\":" + object + "}}\n\n", ""},
		{"no object", frame.SSE, "data: {\"response\":[1]}\n\n", ""},
		{"broken", frame.SSE, "data: {\"response\":{\"id\":\"resp_1\"\n\n", ""},
		{"the end", frame.SSE, "data: [DONE]\n\n", ""},
		{"a comment", frame.SSE, ": {\"response\":{}}\n\n", ""},
		{"a body of another kind", frame.Whole, `{"object":"list"}`, ""},
		{"nothing", frame.Whole, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := string(ResponseObject(row.kind, []byte(row.chunk))); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestResponseObject_StoppedChangesNothingElse(t *testing.T) {
	c := Cut{RunID: "R", Reason: "reset", Next: 7}
	const failure = `{"code":"reset","message":"run R was interrupted: reset; next position 7"}`
	for _, row := range []struct{ object, cancelled, interrupted string }{
		{
			`{ "id":"r", "status":"in_progress" , "error":null,"n":1.0e2 }`,
			`{ "id":"r", "status":"cancelled" , "error":null,"n":1.0e2 }`,
			`{ "id":"r", "status":"failed" , "error":` + failure + `,"n":1.0e2 }`,
		},
		{`{}`, `{"status":"cancelled"}`, `{"status":"failed","error":` + failure + `}`},
		{`{"status":"failed","error":{"code":"x"}}`, `{"status":"cancelled","error":{"code":"x"}}`, `{"status":"failed","error":{"code":"x"}}`},
		{`{"status":"completed","error":{"code":"x"}}`, `{"status":"cancelled","error":{"code":"x"}}`, `{"status":"failed","error":{"code":"x"}}`},
		{`{"status":null}`, `{"status":"cancelled"}`, `{"status":"failed","error":` + failure + `}`},
	} {
		before := []byte(row.object)
		if got := string(CancelledResponse(before)); got != row.cancelled {
			t.Errorf("cancelled: %s, want %s", got, row.cancelled)
		}
		if got := string(InterruptedResponse(before, c)); got != row.interrupted {
			t.Errorf("interrupted: %s, want %s", got, row.interrupted)
		}
		if string(before) != row.object {
			t.Errorf("the chunk was written: %s", before)
		}
	}
}

func FuzzResponseObject(f *testing.F) {
	f.Add([]byte("data: {\"response\":{\"status\":\"queued\"}}\n\n"))
	f.Add([]byte("\n{\"object\":\"response\",\"status\":null,\"error\":[]}"))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		for _, k := range []frame.Kind{frame.SSE, frame.Whole} {
			object := ResponseObject(k, chunk)
			if object == nil {
				continue
			}
			ResponsePending(object)
			for _, stopped := range [][]byte{CancelledResponse(object), InterruptedResponse(object, Cut{Reason: "reset"})} {
				if !json.Valid(stopped) {
					t.Errorf("%q became %q", object, stopped)
				}
			}
		}
	})
}
