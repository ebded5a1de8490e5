package frame

import "strings"

// Kind is how the bytes of an answer are cut into chunks.
type Kind string

// The framings of docs/providers.md, section 1.
const (
	SSE       Kind = "sse"        // text/event-stream: through a blank line
	NDJSON    Kind = "ndjson"     // one JSON value a line
	JSONArray Kind = "json_array" // one array, streamed element by element
	AWS       Kind = "aws_event_stream"
	Opaque    Kind = "opaque" // a stream of unknown shape: what one read gave
	Whole     Kind = "whole"  // not a stream: the whole body is one chunk
)

// Detect returns the framing of an answer by its media type; parameters and case do not matter.
// stream says whether a stream was asked for. The types that can only be streams need no asking;
// application/json is a stream of elements only where one was asked for.
func Detect(contentType string, stream bool) Kind {
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "text/event-stream":
		return SSE
	case "application/x-ndjson", "application/stream+json", "application/jsonl":
		return NDJSON
	case "application/vnd.amazon.eventstream":
		return AWS
	case "application/json":
		if stream {
			return JSONArray
		}
	}
	if stream {
		return Opaque
	}
	return Whole
}
