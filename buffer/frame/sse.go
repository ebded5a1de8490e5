package frame

import "bytes"

// events cuts text/event-stream after each blank line: two line ends in a row, each LF, CRLF or CR.
// A line end that begins a chunk is the first of two, so pure-LF streams are cut at each "\n\n",
// counted without overlap.
type events struct {
	seen int // bytes of the chunk that were looked at
	ends int // line ends in a row, up to seen
}

// cut makes a chunk that would end on CR wait for the next byte: an LF still belongs to it.
func (e *events) cut(b []byte) (int, error) {
	for e.seen < len(b) {
		c := b[e.seen]
		crlf := c == '\n' && e.seen > 0 && b[e.seen-1] == '\r'
		switch {
		case crlf: // its line end was counted at the CR
			e.seen++
		case e.ends == 2: // a CR ended the chunk, and no LF came
			return e.next(), nil
		case c == '\n' || c == '\r':
			e.ends++
			e.seen++
		default:
			e.ends = 0
			e.seen += indexEither(b[e.seen:], '\n', '\r')
		}
		if e.ends == 2 && c == '\n' {
			return e.next(), nil
		}
	}
	return 0, nil
}

// next makes ready for the next chunk and returns the size of this one.
func (e *events) next() int {
	n := e.seen
	*e = events{}
	return n
}

// whole accepts a chunk that ended on CR, and a tail without its blank line that parses.
func (e *events) whole(tail []byte, _ bool) bool {
	return e.ends == 2 || wholeEvent(tail)
}

// wholeEvent reports whether a tail of an event stream is an event that lacks only its blank line:
// its data is complete JSON or the "[DONE]" of OpenAI's protocol, or it has nothing but complete
// comments, or it is a bare JSON value, which is how Gemini reports an error.
func wholeEvent(tail []byte) bool {
	if isBlank(tail) {
		return true
	}
	var data []byte
	hasData, onlyComments := false, true
	for rest := tail; len(rest) > 0; {
		n := indexEither(rest, '\n', '\r')
		line, ended := rest[:n], n < len(rest)
		rest = rest[min(n+1, len(rest)):] // the LF of a CRLF becomes an empty line, which says nothing here

		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
		case len(name) == 0: // a comment
			onlyComments = onlyComments && ended
		case string(name) == "data":
			hasData = true
			data = append(append(data, value...), '\n')
		default:
			onlyComments = false
		}
	}
	if hasData {
		return isJSON(data) || string(bytes.TrimSpace(data)) == "[DONE]"
	}
	return onlyComments || isJSON(tail)
}
