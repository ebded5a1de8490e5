package provider

import (
	"bytes"

	"github.com/spool-dev/spool/buffer/frame"
)

// block is what one SSE chunk says: its event name and its data, less the framing.
type block struct {
	name  string
	data  string // the data lines, joined by LF
	lines int    // how many data lines there were
	stray bool   // it has a line that is no field of SSE
}

// parseBlock reads one SSE block. Lines end in LF, CRLF or CR, a byte order mark may stand before
// the first, and one space after a colon is no part of the value. The result points into chunk, or
// into scratch where several data lines had to be joined; scratch is returned for the next call.
func parseBlock(chunk, scratch []byte) (block, []byte) {
	var b block
	rest := bytes.TrimPrefix(chunk, []byte("\ufeff"))
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		if len(line) == 0 || line[0] == ':' {
			continue
		}
		field, value := cutField(line)
		switch view(field) {
		case "data":
			if b.lines++; b.lines == 1 {
				b.data = view(value)
				continue
			}
			if b.lines == 2 {
				scratch = append(scratch[:0], b.data...)
			}
			scratch = append(append(scratch, '\n'), value...)
			b.data = view(scratch)
		case "event":
			b.name = view(value)
		case "error": // llama.cpp puts its errors into a field of their own
			b.name, b.data, b.lines = "error", view(value), 1
		case "id", "retry":
		default:
			b.stray = true
		}
	}
	return b, scratch
}

// eachData calls read with every data line of a block by itself.
func eachData(chunk []byte, read func(data string)) {
	rest := bytes.TrimPrefix(chunk, []byte("\ufeff"))
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		if field, value := cutField(line); view(field) == "data" {
			read(view(value))
		}
	}
}

// cutLine cuts the first line off b, without its end.
func cutLine(b []byte) (line, rest []byte) {
	i := frame.LineEnd(b)
	if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
		return b[:i], b[i+2:]
	}
	return b[:i], b[min(i+1, len(b)):]
}

func cutField(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return field, value
}
