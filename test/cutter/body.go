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
}

// NewState implements toxics.StatefulToxic: what is known of one connection.
func (l *limitBody) NewState() any { return new(seen) }

type seen struct {
	head []byte // what came before the body; kept until its end is found
	left int64  // bytes of the body that may pass; of use once that is so
	body bool
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
			pass := len(c.Data)
			if s.body {
				pass = int(min(int64(pass), s.left))
				s.left -= int64(pass)
			} else if s.head = append(s.head, c.Data...); bytes.Contains(s.head, endOfHead) {
				before := bytes.Index(s.head, endOfHead) + len(endOfHead)
				come := int64(len(s.head) - before)
				s.body, s.left = true, max(0, l.Bytes-come)
				pass -= int(max(0, come-l.Bytes))
			}
			if c.Data = c.Data[:pass]; pass > 0 {
				stub.Output <- c
			}
			if s.body && s.left == 0 {
				stub.Close()
				return
			}
		}
	}
}
