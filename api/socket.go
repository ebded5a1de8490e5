package api

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// socket is a client's connection, or its stream of one, as its handler writes to it: what is
// written must be taken within the limit, and a quiet socket stays open for as long as it is.
type socket struct {
	w     http.ResponseWriter
	limit time.Duration
}

// write sends bytes on their way. It reports whether the client still takes them.
func (s socket) write(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	s.hurry()
	_, err := s.w.Write(b)
	return err == nil
}

// joinBytes is the size from which a chunk is written as it is, and the most that is joined.
const joinBytes = 64 << 10

var joins = sync.Pool{New: func() any { return new([joinBytes]byte) }}

// writeAll writes a page's chunks, of which there is at least one, less the first skip bytes, in few writes: small
// ones are joined. Where it is false, nobody may write to the memory of the chunks any more: HTTP/2 gives up a
// write when the stream ends, and may be reading still.
func (s socket) writeAll(page *buffer.Page, skip int64) bool {
	if len(page.Chunks) == 1 {
		data := page.Chunks[0].Data
		return s.write(data[min(skip, int64(len(data))):])
	}
	if page.Joined != nil {
		return s.writeJoined(page.Joined[min(skip, int64(len(page.Chunks[0].Data))):])
	}
	space := joins.Get().(*[joinBytes]byte)
	joined := space[:0]
	for _, c := range page.Chunks {
		data := c.Data[min(skip, int64(len(c.Data))):]
		skip = 0
		if len(joined)+len(data) > joinBytes {
			if !s.write(joined) {
				return false
			}
			joined = joined[:0]
		}
		if len(data) > joinBytes {
			if !s.write(data) {
				return false
			}
			continue
		}
		joined = append(joined, data...)
	}
	if !s.write(joined) {
		return false
	}
	joins.Put(space)
	return true
}

// writeJoined gives the client time for each part, as if it had been joined.
func (s socket) writeJoined(data []byte) bool {
	for part := range slices.Chunk(data, joinBytes) {
		if !s.write(part) {
			return false
		}
	}
	return true
}

// flush hands over what was written, by which the request has been heard out: net/http has read or
// given up what was left of it before it wrote.
func (s socket) flush() bool {
	taken := s.push()
	heard(s.w)
	return taken
}

// push hands over what was written. The deadline ends with it: on HTTP/2 one that passes while
// nothing is written resets the stream, on HTTP/1.1 it fails the end of the body.
func (s socket) push() bool {
	s.hurry()
	rc := http.NewResponseController(s.w)
	err := rc.Flush()
	_ = rc.SetWriteDeadline(time.Time{}) // as in hurry
	return err == nil
}

// hurry starts the time of what the handler, or the server after it, is about to write.
func (s socket) hurry() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.limit)) // a writer that has none never blocks for ever
}
