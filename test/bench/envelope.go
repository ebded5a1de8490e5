package main

import (
	"bufio"
	"bytes"
	"io"
)

// envelope reads what a stream holds out of the server-sent events that a Durable Streams server wraps
// it in: each "data" event is one or more of the stream's lines, a "control" event is the server's own.
type envelope struct {
	io.Closer
	lines *bufio.Reader
	data  bool // the event that is being read is one of the stream's
	begun bool // and this is not its first line
	rest  []byte
}

func openEnvelope(body io.ReadCloser) *envelope {
	return &envelope{Closer: body, lines: bufio.NewReaderSize(body, readSize)}
}

// Read implements io.Reader.
func (e *envelope) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	// Whole lines while they are there: a reader that got one at a time would look at its clock for each.
	n := copy(p, e.rest)
	e.rest = e.rest[:copy(e.rest, e.rest[n:])]
	for len(e.rest) == 0 && n < len(p) && e.lineThere() {
		if err := e.next(); err != nil {
			return n, err
		}
		m := copy(p[n:], e.rest)
		e.rest = e.rest[:copy(e.rest, e.rest[m:])]
		n += m
	}
	return n, nil
}

// lineThere says whether a whole line can be read without waiting.
func (e *envelope) lineThere() bool {
	b, _ := e.lines.Peek(e.lines.Buffered()) // what is buffered can be peeked at
	return bytes.IndexByte(b, '\n') >= 0
}

// next takes one line in.
func (e *envelope) next() error {
	line, err := e.lines.ReadSlice('\n')
	if err != nil {
		return err // a line is an event of the bench at most, and fits
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	switch {
	case len(line) == 0:
		e.data, e.begun = false, false
	case bytes.HasPrefix(line, []byte("event: ")):
		e.data = string(line) == "event: data"
	case e.data && bytes.HasPrefix(line, []byte("data:")):
		if e.begun {
			e.rest = append(e.rest, '\n')
		}
		e.begun = true
		e.rest = append(e.rest, line[len("data:"):]...)
	}
	return nil
}
