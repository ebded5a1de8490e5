package fakellm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// headBytes is the status line and the headers, in the order of their names.
func headBytes(op Op) []byte {
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", op.Status, http.StatusText(op.Status))
	for _, name := range slices.Sorted(maps.Keys(op.Headers)) {
		for _, v := range op.Headers[name] {
			b = fmt.Appendf(b, "%s: %s\r\n", name, v)
		}
	}
	return append(b, "\r\n"...)
}

// withHeader adds a header where none of that name is given. The op's own map stays as it is: it may
// be played by many connections at once.
func withHeader(h map[string][]string, name, value string) map[string][]string {
	for k := range h {
		if strings.EqualFold(k, name) {
			return h
		}
	}
	h = maps.Clone(h)
	if h == nil {
		h = make(map[string][]string, 1)
	}
	h[name] = []string{value}
	return h
}

// announceClose adds Connection: close where an end is to come. A client would else take the
// connection for its next request while it dies, and the test would fail now and then. A script that
// wants just that says Connection: keep-alive.
func announceClose(h map[string][]string, next []Op) map[string][]string {
	for _, op := range next {
		if op.Kind == opEnd {
			return withHeader(h, "Connection", "close")
		}
	}
	return h
}

// statedLength is the Content-Length that is about to be sent; a broken one is owed for ever.
func statedLength(h map[string][]string) int64 {
	for k, v := range h {
		if strings.EqualFold(k, "Content-Length") && len(v) == 1 {
			if n, err := strconv.ParseInt(v[0], 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// length is how many bytes of body the ops write, up to the next answer.
func length(ops []Op) (n int64) {
	for _, op := range ops {
		switch op.Kind {
		case opData, opCut:
			n += int64(len(op.Data))
		case opRepeat:
			n += int64(len(op.Data)) * int64(op.Count)
		case opHead, opJSON:
			return n
		}
	}
	return n
}
