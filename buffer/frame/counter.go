package frame

import "bytes"

// Counter counts the chunks of a body that passes by, in pieces of any size, and keeps no more of it
// than the chunk that has not ended yet. It is for one goroutine.
//
// A body whose chunks its bytes do not show, of kind Opaque or Whole, or one that no Scanner would
// cut any further, is all one chunk that never ends.
type Counter struct {
	cut     cutter // nil: nothing ends any more
	open    []byte // the chunk that has not ended yet, while there is a cutter
	chunks  int64
	pending int64
}

// NewCounter returns a Counter for bodies of kind k.
func NewCounter(k Kind) *Counter {
	if k == Opaque || k == Whole {
		return &Counter{}
	}
	return &Counter{cut: newCutter(k, DefaultLimit)}
}

// Write takes the next piece. It takes all of it, always.
func (c *Counter) Write(p []byte) (int, error) {
	c.pending += int64(len(p))
	if c.cut == nil {
		return len(p), nil
	}
	rest := p
	if len(c.open) > 0 {
		c.open = append(c.open, p...)
		rest = c.open
	}
	n, err := c.cut.cut(rest)
	if n == 0 && err == nil && len(c.open) > 0 && len(rest) <= DefaultLimit {
		return len(p), nil // the chunk goes on, and is not copied again
	}
	for ; n > 0 && err == nil; n, err = c.cut.cut(rest) {
		rest = rest[n:]
		c.chunks++
		c.pending = int64(len(rest))
	}
	c.open = bytes.Clone(rest) // of a read that ends with its chunk, nothing
	if err != nil || len(rest) > DefaultLimit {
		c.cut, c.open = nil, nil
	}
	return len(p), nil
}

// Chunks is how many chunks have ended.
func (c *Counter) Chunks() int64 { return c.chunks }

// Pending is how many bytes have passed since the last chunk ended.
func (c *Counter) Pending() int64 { return c.pending }
