package frame

// Kind is how the bytes of an answer are cut into chunks.
type Kind string

// The framings of providers.md, section 1.
const (
	SSE       Kind = "sse"        // text/event-stream: through a blank line
	NDJSON    Kind = "ndjson"     // one JSON value a line
	JSONArray Kind = "json_array" // one array, streamed element by element
	AWS       Kind = "aws_event_stream"
	Opaque    Kind = "opaque" // a stream of unknown shape: what one read gave
	Whole     Kind = "whole"  // not a stream: the whole body is one chunk
)
