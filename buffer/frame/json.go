package frame

import (
	"bytes"
	"encoding/json"
)

// lines cuts NDJSON after each LF. A blank line is a chunk like any other.
type lines struct {
	seen int // bytes of the chunk that were looked at
}

func (l *lines) cut(b []byte) (int, error) {
	i := bytes.IndexByte(b[l.seen:], '\n')
	if i < 0 {
		l.seen = len(b)
		return 0, nil
	}
	n := l.seen + i + 1
	l.seen = 0
	return n, nil
}

func (l *lines) whole(tail []byte, _ bool) bool { return isBlank(tail) || isJSON(tail) }

// elements cuts one JSON array into its elements. A chunk is an element with the bytes before it;
// the closing bracket joins the last. So an element is known to end only by the ',' or ']' after it,
// and white space before that ',' goes to the next chunk.
//
// It knows strings and depth and no more grammar than that: whether it is JSON is for its reader.
type elements struct {
	at    place
	seen  int // bytes of the chunk that were looked at
	end   int // where the chunk's element ends as far as is seen, 0 while it has none
	depth int // brackets open inside the element

	inString, escaped bool
}

// place is where in the body elements stands.
type place int

const (
	beforeArray place = iota
	inArray
	afterArray
	noArray // the body is something else: the whole of it is one chunk
)

func (e *elements) cut(b []byte) (int, error) {
	for e.seen < len(b) && (e.at == beforeArray || e.at == inArray) {
		switch {
		case e.at == beforeArray:
			e.open(b[e.seen])
		case e.inString:
			e.quoted(b)
		case e.depth > 0:
			e.nested(b[e.seen])
		default:
			if n := e.top(b[e.seen]); n > 0 {
				e.seen, e.end = 0, 0
				return n, nil
			}
		}
	}
	return 0, nil
}

// open looks for the bracket that opens the array. A byte order mark may stand before it.
func (e *elements) open(c byte) {
	e.seen++
	switch c {
	case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
	case '[':
		e.at = inArray
	default:
		e.at = noArray
	}
}

// quoted takes what there is of a string.
func (e *elements) quoted(b []byte) {
	if e.escaped {
		e.escaped = false
		e.seen++
		return
	}
	e.seen += indexEither(b[e.seen:], '"', '\\')
	if e.seen == len(b) {
		return
	}
	e.escaped = b[e.seen] == '\\'
	e.inString = e.escaped
	e.seen++
	if !e.inString {
		e.markEnd()
	}
}

// nested takes a byte inside an object or array.
func (e *elements) nested(c byte) {
	e.seen++
	switch c {
	case '"':
		e.inString = true
	case '{', '[':
		e.depth++
	case '}', ']':
		e.depth--
		e.markEnd()
	}
}

// top takes a byte between elements, or of a bare number or word. It returns the size of the chunk
// that the byte ends, or 0.
func (e *elements) top(c byte) int {
	e.seen++
	switch c {
	case ' ', '\t', '\r', '\n':
	case ',':
		return e.end
	case ']':
		e.at = afterArray
		return e.seen
	case '"':
		e.inString = true
	case '{', '[':
		e.depth++
	default:
		e.markEnd()
	}
	return 0
}

// markEnd notes that the element may end here.
func (e *elements) markEnd() {
	if e.depth == 0 {
		e.end = e.seen
	}
}

// whole accepts a last element that is complete, although the array is not.
func (e *elements) whole(tail []byte, eof bool) bool {
	switch e.at {
	case noArray:
		return eof
	case inArray: // a bracket or comma stands before the element
		return isJSON(tail[bytes.IndexAny(tail, "[,")+1:])
	default:
		return isBlank(tail) || isJSON(tail)
	}
}

func isBlank(b []byte) bool { return len(bytes.TrimLeft(b, " \t\r\n")) == 0 }

func isJSON(b []byte) bool { return json.Valid(b) }
