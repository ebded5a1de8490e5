package frame

// cutter finds the ends of the chunks of one body.
type cutter interface {
	// cut returns the size of the chunk that b begins with, or 0 if its end has not come. It is
	// called again with the same bytes and more until it has found the end, then with what follows.
	// It looks at each byte a constant number of times.
	cut(b []byte) (int, error)

	// whole reports whether tail, for which cut found no end before the reader's, is a chunk all the
	// same. eof tells a proper end from an error.
	whole(tail []byte, eof bool) bool
}

func newCutter(k Kind, limit int) cutter {
	switch k {
	case SSE:
		return &events{}
	case NDJSON:
		return &lines{}
	case JSONArray:
		return &elements{}
	case AWS:
		return messages{limit: limit}
	case Whole:
		return body{}
	default:
		return reads{}
	}
}

// body cuts nothing: only its proper end makes it whole.
type body struct{}

func (body) cut([]byte) (int, error)       { return 0, nil }
func (body) whole(_ []byte, eof bool) bool { return eof }

// reads takes what one read gave.
type reads struct{}

func (reads) cut(b []byte) (int, error) { return len(b), nil }
func (reads) whole([]byte, bool) bool   { return true }
