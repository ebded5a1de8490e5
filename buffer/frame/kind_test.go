package frame_test

import (
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

func TestDetect_GoesByMediaType(t *testing.T) {
	tests := []struct {
		contentType     string
		stream, oneBody frame.Kind
	}{
		{"text/event-stream", frame.SSE, frame.SSE},
		{"text/event-stream; charset=utf-8", frame.SSE, frame.SSE},
		{"Text/Event-Stream;charset=UTF-8", frame.SSE, frame.SSE},
		{" text/event-stream ; broken=\"", frame.SSE, frame.SSE},
		{"application/x-ndjson", frame.NDJSON, frame.NDJSON},
		{"application/stream+json", frame.NDJSON, frame.NDJSON},
		{"application/jsonl", frame.NDJSON, frame.NDJSON},
		{"application/vnd.amazon.eventstream", frame.AWS, frame.AWS},
		{"application/json", frame.JSONArray, frame.Whole},
		{"application/json; charset=UTF-8", frame.JSONArray, frame.Whole},
		{"application/json-seq", frame.Opaque, frame.Whole},
		{"application/problem+json", frame.Opaque, frame.Whole},
		{"text/html", frame.Opaque, frame.Whole},
		{"text/event-streams", frame.Opaque, frame.Whole},
		{"audio/mpeg", frame.Opaque, frame.Whole},
		{"", frame.Opaque, frame.Whole},
	}
	for _, tt := range tests {
		t.Run(tt.contentType, func(t *testing.T) {
			if got := frame.Detect(tt.contentType, true); got != tt.stream {
				t.Errorf("a stream is %q, want %q", got, tt.stream)
			}
			if got := frame.Detect(tt.contentType, false); got != tt.oneBody {
				t.Errorf("one body is %q, want %q", got, tt.oneBody)
			}
		})
	}
}
