package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spool-dev/spool/buffer"
)

// A segment is written when it has one of these: large enough that a replay reads few rows, small
// enough that a reader of one chunk reads little besides.
const (
	segmentBytes  = 64 << 10
	segmentChunks = 4096
)

// piece is chunks of one run that follow each other, as a row of arrivals or segments has them.
type piece struct {
	pos   int64  // of the first chunk
	start int64  // its byte offset within the run
	sizes string // the lengths of the chunks, as a JSON array
	data  []byte // the chunks
}

// pack joins chunks, of which there is at least one.
func pack(chunks []buffer.Chunk) piece {
	first := chunks[0]
	p := piece{pos: first.Pos, start: first.End - int64(len(first.Data))}
	if len(chunks) == 1 {
		p.data = first.Data
	} else {
		p.data = make([]byte, 0, chunks[len(chunks)-1].End-p.start)
	}
	sizes := append(make([]byte, 0, 2+5*len(chunks)), '[')
	for i, c := range chunks {
		if i > 0 {
			sizes = append(sizes, ',')
		}
		sizes = strconv.AppendInt(sizes, int64(len(c.Data)), 10)
		if len(chunks) > 1 {
			p.data = append(p.data, c.Data...)
		}
	}
	if p.data == nil {
		p.data = []byte{} // nil would be NULL
	}
	p.sizes = string(append(sizes, ']'))
	return p
}

// unpack cuts the chunks again, without a copy of their bytes, and appends them to chunks.
func (p piece) unpack(chunks []buffer.Chunk) ([]buffer.Chunk, error) {
	chunks = slices.Grow(chunks, 1+strings.Count(p.sizes, ","))
	pos, at, size, digits := p.pos, 0, 0, 0
	for i := 1; i < len(p.sizes); i++ {
		c := p.sizes[i]
		if c >= '0' && c <= '9' && size <= len(p.data) {
			size, digits = 10*size+int(c-'0'), digits+1
			continue
		}
		if digits == 0 || c != ',' && c != ']' || size > len(p.data)-at {
			return nil, p.damaged()
		}
		chunks = append(chunks, buffer.Chunk{Pos: pos, End: p.start + int64(at+size), Data: p.data[at : at+size : at+size]})
		pos, at, size, digits = pos+1, at+size, 0, 0
	}
	if digits != 0 || at != len(p.data) {
		return nil, p.damaged()
	}
	return chunks, nil
}

func (p piece) damaged() error {
	return fmt.Errorf("the sizes at position %d do not fit the %d bytes there", p.pos, len(p.data))
}

// cut takes the chunks of one segment from the front of chunks: at least one, and no more than fit.
func cut(chunks []buffer.Chunk) (segment, rest []buffer.Chunk) {
	n := min(fit(chunks, segmentBytes), segmentChunks)
	return chunks[:n], chunks[n:]
}

// span is how many bytes chunks have.
func span(chunks []buffer.Chunk) int64 {
	if len(chunks) == 0 {
		return 0
	}
	return chunks[len(chunks)-1].End - chunks[0].End + int64(len(chunks[0].Data))
}
