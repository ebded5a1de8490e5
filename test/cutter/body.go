package cutter

import (
	"bytes"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// bodyLimit is the name of our one toxic.
const bodyLimit = "limit_body"

// limitBody is toxiproxy's limit_data for who cannot know how long an answer's head is: it counts from
// the end of the first one.
type limitBody struct {
	Bytes int64 `json:"bytes"`
	Lines int64 `json:"lines"` // if not 0, the line ends pass that come right after those bytes
}

// NewState implements toxics.StatefulToxic: what is known of one connection.
func (l *limitBody) NewState() any { return &seen{left: l.Bytes, lines: l.Lines != 0} }

type seen struct {
	head  []byte // what came before the body; kept until its end is found
	body  bool
	left  int64 // bytes of the body that may pass
	lines bool
}

var endOfHead = []byte("\r\n\r\n")

// Pipe implements toxics.Toxic.
func (l *limitBody) Pipe(stub *toxics.ToxicStub) {
	s := stub.State.(*seen)
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			pass, last := s.take(c.Data)
			if c.Data = c.Data[:pass]; pass > 0 {
				stub.Output <- c
			}
			if last {
				stub.Close()
				return
			}
		}
	}
}

// take returns how many of the next bytes may pass, and whether they are the last that may.
func (s *seen) take(data []byte) (pass int, last bool) {
	body := data
	if !s.body {
		s.head = append(s.head, data...)
		_, come, found := bytes.Cut(s.head, endOfHead)
		if !found {
			return len(data), false
		}
		s.body, body = true, come
	}
	n := int(min(int64(len(body)), s.left))
	s.left -= int64(n)
	if s.left > 0 {
		return len(data), false
	}
	if !s.lines {
		return len(data) - len(body) + n, true
	}
	rest := bytes.TrimLeft(body[n:], "\n")
	return len(data) - len(rest), len(rest) > 0
}
