package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
)

// blocks writes the EventSource dialect of docs/protocol.md, section 4: a block is some lines and a
// blank one, and all lines end in LF. An id is the last line of its block: some readers take a block for
// read as soon as its id has come, and would not ask for the rest of it after a cut. What is written waits
// for send, so that a page is one write; beyond spill it goes out before.
type blocks struct {
	out    func([]byte) bool
	buf    []byte
	failed bool
	retry  int // milliseconds, for the first block; 0 once it has been told
}

const (
	spill = 4 << 20  // bytes that wait at most: a page of the smallest events is less
	keep  = 64 << 10 // bytes of memory that a quiet stream keeps
	piece = 96 << 10 // bytes of an event that are taken at once: a multiple of three, for base64
	bom   = "\ufeff" // begins some providers' streams, and is a mark of the encoding there alone
)

// send writes what has waited. It reports whether the client has taken all that was ever sent.
func (b *blocks) send() bool {
	if len(b.buf) > 0 && !b.failed {
		b.failed = !b.out(b.buf)
	}
	if b.buf = b.buf[:0]; b.failed || cap(b.buf) > keep { // HTTP/2 may be reading still what it has given up
		b.buf = nil
	}
	return !b.failed
}

func (b *blocks) line(field string, value []byte) {
	b.begin(field)
	for part := range slices.Chunk(value, piece) { // the whole of a large event would be held twice
		if b.buf = append(b.buf, part...); len(b.buf) >= spill {
			b.send()
		}
	}
	b.buf = append(b.buf, '\n')
}

// begin writes the name of a line that goes on.
func (b *blocks) begin(field string) {
	if len(b.buf) >= spill {
		b.send()
	}
	if b.retry > 0 {
		b.buf = append(b.buf, "retry: "...)
		b.buf = append(strconv.AppendInt(b.buf, int64(b.retry), 10), '\n')
		b.retry = 0
	}
	b.buf = append(b.buf, field...)
}

// wait tells, in a block of its own, after how many milliseconds to come back.
func (b *blocks) wait(ms int) {
	b.retry = 0
	b.line("retry: ", strconv.AppendInt(nil, int64(ms), 10))
	b.end()
}

func (b *blocks) end() { b.buf = append(b.buf, '\n') }

// id writes none where run is empty: the page keeps the last one.
func (b *blocks) id(run string, pos int64) {
	if run == "" {
		return
	}
	b.line("id: ", strconv.AppendInt([]byte(run+":"), pos, 10))
}

// event writes an event of the buffer's own. An empty id writes none: the reader keeps the last one.
func (b *blocks) event(name, id string, value any) {
	data, _ := json.Marshal(value) // of our own types, which all have a JSON form
	b.line("event: ", []byte(name))
	b.line("data: ", data)
	if id != "" {
		b.line("id: ", []byte(id))
	}
	b.end()
}

// chunk writes a chunk that was cut as kind says.
func (b *blocks) chunk(run string, kind frame.Kind, c buffer.Chunk) {
	switch {
	case kind == frame.SSE && !bareJSON(c.Data):
		b.own(run, c)
	case kind == frame.AWS || !utf8.Valid(c.Data):
		b.binary(run, c)
	default:
		b.text(run, kind, c)
	}
}

// bareJSON reports whether a chunk of an event stream is no event but a JSON value without a field's
// name, which is how some providers tell of an error.
func bareJSON(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && (data[0] == '{' || data[0] == '[') && json.Valid(data)
}

// own writes the lines of an event of the provider's, less its id and retry, which are the buffer's
// here. The id is in the block that carries data, since a page gets no other.
func (b *blocks) own(run string, c buffer.Chunk) {
	data := c.Data
	if c.Pos == 0 {
		data = bytes.TrimPrefix(data, []byte(bom))
	}
	some, bears := false, false
	for line := range ownLines(data) {
		some = true
		bears = bears || string(fieldName(line)) == "data"
		b.line("", line)
	}
	if !some {
		return
	}
	if bears {
		b.id(run, c.Pos)
	}
	b.end()
}

// ownLines yields the lines of an event that go to a page.
func ownLines(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for line := range lines(data) {
			switch string(fieldName(line)) {
			case "id", "retry":
				continue
			}
			if len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

func fieldName(line []byte) []byte {
	name, _, _ := bytes.Cut(line, []byte(":"))
	return name
}

// text writes a chunk that is no event as one whose data it is. The line end of an NDJSON value is
// its framing; any other is a part of the data.
func (b *blocks) text(run string, kind frame.Kind, c buffer.Chunk) {
	data := c.Data
	if kind == frame.NDJSON {
		if data = bytes.TrimSpace(data); len(data) == 0 {
			return
		}
	}
	for line := range lines(data) {
		b.line("data: ", line)
	}
	if n := len(data); n > 0 && (data[n-1] == '\n' || data[n-1] == '\r') {
		b.line("data: ", nil) // else the page would not see that line end
	}
	b.id(run, c.Pos)
	b.end()
}

// binary writes a chunk that is no text as an event named binary, in base64, which is what a page
// can decode without loss.
func (b *blocks) binary(run string, c buffer.Chunk) {
	b.line("event: ", []byte("binary"))
	b.begin("data: ")
	for part := range slices.Chunk(c.Data, piece) {
		if b.buf = base64.StdEncoding.AppendEncode(b.buf, part); len(b.buf) >= spill {
			b.send()
		}
	}
	b.buf = append(b.buf, '\n')
	b.id(run, c.Pos)
	b.end()
}

// lines yields what lies between two line ends: LF, CR or CRLF. Nothing after the last one is no line.
func lines(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := bytes.IndexAny(data, "\r\n")
			if n < 0 {
				yield(data)
				return
			}
			line := data[:n]
			if data[n] == '\r' && n+1 < len(data) && data[n+1] == '\n' {
				n++
			}
			data = data[n+1:]
			if !yield(line) {
				return
			}
		}
	}
}
