package fakellm

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// resetGrace lets the peer read what was sent before a reset, which may throw unread bytes away.
const resetGrace = 30 * time.Millisecond

// errOver ends an answer: the peer has gone, the server closes, or the script has closed the connection.
var errOver = errors.New("answer over")

// player plays one answer on a connection.
type player struct {
	conn  net.Conn
	gone  <-chan struct{} // closed when the peer has left
	quit  <-chan struct{} // closed when the server closes
	wrote func(n int)
	last  func() // called before the last bytes of an answer that ends properly

	framing string
	owed    int64 // framing length: bytes of the body still to come
	whole   bool  // the peer knows that the answer has ended, the connection can be used again
	buf     []byte
	bare    bool // a HEAD request: its answer has no body, which would be taken for the next one's head
}

// play runs the ops in turn and reports whether the connection can be used for another request.
func (p *player) play(ops []Op) (reusable bool) {
	for i, op := range ops {
		if err := p.step(op, ops[i+1:]); err != nil {
			return false
		}
	}
	return p.whole || p.framing == framingLength && p.owed == 0
}

func (p *player) step(op Op, next []Op) error {
	switch op.Kind {
	case opJSON:
		return p.json(op)
	case opHead:
		return p.head(op, next)
	case opData:
		return p.data(op.Data)
	case opSleep:
		return p.sleep(op.Wait)
	case opRepeat:
		return p.repeat(op)
	case opCut:
		return p.cut(op)
	case opDone:
		return p.finish()
	case opEnd:
		return errors.Join(p.finish(), p.close())
	case opFin:
		return p.close()
	case opRST:
		return p.reset()
	case opHang:
		return p.hang(op.Wait)
	case opGo:
		return op.run(p)
	}
	return fmt.Errorf("unknown op %q", op.Kind)
}

func (p *player) json(op Op) error {
	op.Headers = withHeader(op.Headers, "Content-Type", "application/json")
	op.Headers = withHeader(op.Headers, "Content-Length", strconv.Itoa(len(op.Data)))
	p.framing, p.whole = framingRaw, true
	p.last()
	if p.bare {
		return p.send(headBytes(op))
	}
	return p.send(append(headBytes(op), op.Data...))
}

func (p *player) head(op Op, next []Op) error {
	p.framing, p.whole = op.Framing, false
	if op.Status < 200 || op.Status == http.StatusNoContent || op.Status == http.StatusNotModified {
		p.framing, p.whole = framingRaw, op.Status >= 200 // these have no body
	}
	switch p.framing {
	case framingChunked:
		op.Headers = withHeader(op.Headers, "Transfer-Encoding", "chunked")
		op.Headers = announceClose(op.Headers, next)
	case framingClose:
		op.Headers = withHeader(op.Headers, "Connection", "close")
	case framingLength:
		op.Headers = withHeader(op.Headers, "Content-Length", strconv.FormatInt(length(next), 10))
		op.Headers = announceClose(op.Headers, next)
		p.owed = statedLength(op.Headers)
	}
	return p.send(headBytes(op))
}

// data is one write in the framing of the head. Nothing is no write: an empty chunk would be the end.
func (p *player) data(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.framing != framingChunked {
		if p.owed -= int64(len(b)); p.owed == 0 && p.framing == framingLength {
			p.last()
		}
		return p.write(b)
	}
	p.buf = appendChunk(p.buf[:0], b)
	return p.write(p.buf)
}

func (p *player) repeat(op Op) error {
	for range op.Count {
		if err := p.sleep(op.Wait); err != nil {
			return err
		}
		if err := p.data(op.Data); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) cut(op Op) error {
	first := true
	for piece := range slices.Chunk(op.Data, op.Size) {
		if !first {
			if err := p.sleep(op.Wait); err != nil {
				return err
			}
		}
		first = false
		if err := p.data(piece); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) finish() error {
	p.last()
	switch p.framing {
	case framingChunked:
		p.whole = true
		return p.write([]byte("0\r\n\r\n"))
	case framingClose:
		return p.close()
	}
	return nil
}

func (p *player) close() error {
	// The peer may have closed first; there is nobody to tell.
	_ = p.conn.Close()
	return errOver
}

func (p *player) reset() error {
	if err := p.sleep(resetGrace); err != nil {
		return err
	}
	if c, ok := p.conn.(interface{ SetLinger(sec int) error }); ok {
		if err := c.SetLinger(0); err != nil {
			return err
		}
	}
	return p.close()
}

func (p *player) hang(d time.Duration) error {
	if d == 0 {
		return p.wait(nil)
	}
	if err := p.sleep(d); err != nil {
		return err
	}
	return p.close()
}

func (p *player) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.gone:
	case <-p.quit:
	}
	return errOver
}

func (p *player) wait(open <-chan struct{}) error {
	select {
	case <-open:
		return nil
	case <-p.gone:
	case <-p.quit:
	}
	return errOver
}

// write sends a part of the body.
func (p *player) write(b []byte) error {
	if p.bare {
		return nil
	}
	return p.send(b)
}

func (p *player) send(b []byte) error {
	n, err := p.conn.Write(b)
	p.wrote(n)
	return err
}

func appendChunk(dst, b []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(b)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, b...)
	return append(dst, "\r\n"...)
}
