package frame

import "bytes"

// window bounds, in bytes, how far indexEither looks for one byte before it looks for the other.
// Without it a body that has only one of the two would be scanned to its end at each step.
const window = 512

// indexEither returns the index of the first x or y in b, or len(b) if there is neither.
func indexEither(b []byte, x, y byte) int {
	for at := 0; at < len(b); at += window {
		w := b[at:min(at+window, len(b))]
		first := len(w)
		if i := bytes.IndexByte(w, x); i >= 0 {
			first = i
		}
		if i := bytes.IndexByte(w[:first], y); i >= 0 {
			first = i
		}
		if first < len(w) {
			return at + first
		}
	}
	return len(b)
}

// LineEnd returns the index of the first CR or LF in b, or len(b) if there is neither, in the time that
// it takes to get there.
func LineEnd(b []byte) int { return indexEither(b, '\n', '\r') }
