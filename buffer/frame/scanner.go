package frame

import (
	"bytes"
	"errors"
	"io"
)

// Why a Scanner gives up on a body that could still be read.
var (
	// ErrTooLarge: a chunk is over the limit. It is not given, nor is anything after it.
	ErrTooLarge = errors.New("chunk is over the limit")
	// ErrCorrupt: an AWS event stream message has a bad prelude, so nobody knows where it ends.
	ErrCorrupt = errors.New("corrupt event stream prelude")
)

// DefaultLimit is the size in bytes of the largest chunk where NewScanner is given no limit. Images
// and lines of 32 MiB are real.
const DefaultLimit = 64 << 20

// Scanner cuts what a reader gives into chunks. It is for one goroutine.
//
//	reader ──fill──▶ block ──find──▶ take ──▶ chunk
//
// Chunks are cut out of blocks that are written once and then left alone, so a chunk costs no copy
// and no allocation of its own.
type Scanner struct {
	in    input
	cut   cutter
	limit int

	start int    // in the block: the first byte that is not given yet
	found int    // size of the whole chunk at start, 0 while none is known
	bad   error  // ErrTooLarge or ErrCorrupt: no chunk follows
	tail  []byte // what Partial returns
}

// NewScanner returns a Scanner over r for bodies of kind k. A chunk may have limit bytes; 0 or less
// means DefaultLimit.
func NewScanner(r io.Reader, k Kind, limit int) *Scanner {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Scanner{in: input{r: r, limit: limit}, cut: newCutter(k, limit), limit: limit}
}

// Next returns the next chunk, never an empty one. Its memory belongs to the caller: it is not
// written again.
//
// At the end it returns io.EOF, ErrTooLarge, ErrCorrupt, io.ErrNoProgress or the reader's own error
// as it is, after every chunk before it. Bytes left over at the reader's end that parse whole are one
// more chunk, since some providers forget the last blank line; others are Partial.
func (s *Scanner) Next() ([]byte, error) {
	for !s.find() {
		if s.bad != nil || s.in.err != nil {
			return s.finish()
		}
		s.start = s.in.fill(s.start)
	}
	return s.take(s.found), nil
}

// Buffered reports whether the next call of Next returns without reading. It is exact.
func (s *Scanner) Buffered() bool {
	return s.find() || s.bad != nil || s.in.err != nil
}

// Partial returns, after Next has returned its final error, the half-received event that the body
// ended with, or nil. After ErrTooLarge there is none.
func (s *Scanner) Partial() []byte { return s.tail }

// find looks for the end of the chunk at start and remembers it. The cutter is shown no more than
// limit+1 bytes, so what is too large does not depend on reads either.
func (s *Scanner) find() bool {
	b := s.in.block[s.start:]
	if s.found > 0 || s.bad != nil || len(b) == 0 {
		return s.found > 0
	}
	over := len(b) > s.limit
	if over {
		b = b[:s.limit+1]
	}
	n, err := s.cut.cut(b)
	if err == nil && (n > s.limit || n == 0 && over) {
		err = ErrTooLarge
	}
	if err != nil {
		s.bad = err
		return false
	}
	s.found = n
	return n > 0
}

// take gives the next n bytes away. Their capacity ends with them, so an append by the caller cannot
// reach the next chunk.
func (s *Scanner) take(n int) []byte {
	chunk := s.in.block[s.start : s.start+n : s.start+n]
	s.start += n
	s.found = 0
	return chunk
}

// finish deals with what is left when no more chunks are to be found: a last chunk, or the final
// error. The block is let go, and later calls repeat the error.
func (s *Scanner) finish() ([]byte, error) {
	rest := s.in.block[s.start:]
	if s.bad == nil && len(rest) > 0 && s.wholeTail(rest) {
		return s.take(len(rest)), nil
	}
	if s.bad != ErrTooLarge && len(rest) > 0 {
		s.tail = s.take(len(rest))
	}
	s.in.block, s.start = nil, 0
	if s.bad != nil {
		return nil, s.bad
	}
	return nil, s.in.err
}

// wholeTail reports whether what is left at the reader's end is a chunk. A body so short that it
// still begins with its byte order mark parses without it. Only io.EOF itself is a proper end.
func (s *Scanner) wholeTail(rest []byte) bool {
	return s.cut.whole(bytes.TrimPrefix(rest, []byte("\ufeff")), s.in.err == io.EOF)
}
