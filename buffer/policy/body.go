package policy

import (
	"bytes"
	"iter"
)

// event is one piece of an answer that may hold an error: the data of an SSE event, a line of
// NDJSON, an element of an array, a whole JSON body, a message of an AWS event stream.
type event struct {
	name string // of an SSE event, or of an AWS exception
	data []byte // JSON, or whatever was sent
	// failed: the framing itself says that this is an error.
	failed bool
}

// events yields the pieces of a body, in whatever framing it is. The framing is seen from the bytes,
// not from a header: providers put JSON errors behind an SSE stream, and call JSON a stream. It reads
// each byte a bounded number of times and never fails; what is not understood is passed over.
func events(body []byte) iter.Seq[event] {
	if isEventStream(body) {
		return awsEvents(body)
	}
	return textEvents(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
}

// textEvents reads SSE and JSON, also one after the other. A value that begins a line is JSON; all
// other lines are SSE.
func textEvents(body []byte) iter.Seq[event] {
	return func(yield func(event) bool) {
		var e event
		begun := false
		flush := func() bool {
			ready, was := e, begun
			e, begun = event{}, false
			return !was || yield(ready)
		}
		for len(body) > 0 {
			if value, rest, ok := jsonValue(body); ok {
				if !flush() || !yield(event{data: value}) {
					return
				}
				body = rest
				continue
			}
			var line []byte
			line, body = cutLine(body)
			field, value := cutField(line)
			switch {
			case len(line) == 0:
				if !flush() {
					return
				}
			case field == "event":
				e.name, e.failed = string(value[:min(len(value), 64)]), string(value) == "error"
			case field == "data" && begun:
				e.data = append(append(e.data, '\n'), value...)
			case field == "data":
				e.data, begun = value[:len(value):len(value)], true
			}
		}
		flush()
	}
}

// jsonValue cuts the object that body begins with, after the punctuation of an array. An object that
// is not closed goes to the end.
func jsonValue(body []byte) (value, rest []byte, ok bool) {
	body = bytes.TrimLeft(body, "[], \t")
	if len(body) == 0 || body[0] != '{' {
		return nil, nil, false
	}
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return body[:i+1], body[i+1:], true
			}
		}
	}
	return body, nil, true
}

// cutLine cuts at LF, CRLF or CR.
func cutLine(body []byte) (line, rest []byte) {
	i := bytes.IndexAny(body, "\r\n")
	if i < 0 {
		return body, nil
	}
	if body[i] == '\r' && i+1 < len(body) && body[i+1] == '\n' {
		return body[:i], body[i+2:]
	}
	return body[:i], body[i+1:]
}

// cutField splits an SSE line. A comment's field is empty.
func cutField(line []byte) (field string, value []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(name) > len("event") {
		return "", nil
	}
	return string(name), bytes.TrimPrefix(value, []byte(" "))
}

// isPage reports whether a body is an HTML or XML page.
func isPage(body []byte) bool {
	start := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), 512)], "\xef\xbb\xbf \t\r\n"))
	for _, tag := range []string{"<!doctype", "<html", "<head", "<body", "<?xml"} {
		if bytes.HasPrefix(start, []byte(tag)) {
			return true
		}
	}
	return false
}
