package cutter

import (
	"slices"
	"testing"
)

// However an answer comes in, the same bytes of its body pass.
func TestLimitBody_CountsFromTheEndOfTheHead(t *testing.T) {
	const head, body = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "id: 1\n\nid: 2\n\n"
	for _, row := range []struct {
		name  string
		limit limitBody
		pass  string
	}{
		{"nothing", limitBody{Bytes: 0}, ""},
		{"a part of a line", limitBody{Bytes: 3}, "id:"},
		{"a line without its end", limitBody{Bytes: 5}, "id: 1"},
		{"one line end", limitBody{Bytes: 6}, "id: 1\n"},
		{"lines: a part of a line", limitBody{Bytes: 3, Lines: 1}, "id:"},
		{"lines: before a line's end", limitBody{Bytes: 5, Lines: 1}, "id: 1\n\n"},
		{"lines: before the blank line", limitBody{Bytes: 6, Lines: 1}, "id: 1\n\n"},
		{"lines: after it", limitBody{Bytes: 7, Lines: 1}, "id: 1\n\n"},
	} {
		for size := 1; size <= len(head+body); size++ {
			s := row.limit.NewState().(*seen)
			var passed []byte
			last := false
			for part := range slices.Chunk([]byte(head+body), size) {
				var n int
				if n, last = s.take(part); !last && n != len(part) {
					t.Fatalf("%s, by %d: %d of %d bytes pass, and more is to", row.name, size, n, len(part))
				}
				if passed = append(passed, part[:n]...); last {
					break
				}
			}
			if string(passed) != head+row.pass || !last {
				t.Errorf("%s, by %d: %q pass, the last %t", row.name, size, passed, last)
			}
		}
	}
}
