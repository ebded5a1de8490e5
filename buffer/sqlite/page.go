package sqlite

import (
	"database/sql"
	"fmt"
	"sync"

	"github.com/spool-dev/spool/buffer"
)

// pooledBytes is the most of one page's bytes that is kept for the next one: more than a page has, but for one
// that has a large chunk.
const pooledBytes = 512 << 10

// pageMemory is what a page that is read from the file is made of. A replay takes one page after the other, and
// would else make as much garbage as it reads, and more.
type pageMemory struct {
	chunks []buffer.Chunk
	bytes  []byte // its rows, one behind the other
	row    []byte // one behind them that is read, with room for a tag
	grown  bool   // there was no room: the first rows are elsewhere
}

var pageMemories = sync.Pool{New: func() any { return new(pageMemory) }}

// takePageMemory has room for so many chunks and bytes. If more come, it grows.
func takePageMemory(chunks, bytes int64) *pageMemory {
	m := pageMemories.Get().(*pageMemory)
	if int64(cap(m.chunks)) < chunks {
		m.chunks = make([]buffer.Chunk, 0, chunks)
	}
	if bytes += tagSize; int64(cap(m.bytes)) < bytes {
		m.bytes = make([]byte, 0, bytes)
	}
	return m
}

// give gives it to the next page. Nobody may read what was here.
func (m *pageMemory) give() {
	if cap(m.bytes) > pooledBytes {
		m.bytes = nil
	}
	poison(m.bytes)
	clear(m.chunks) // they may keep more alive than bytes is now
	m.chunks, m.bytes, m.row, m.grown = m.chunks[:0], m.bytes[:0], nil, false
	pageMemories.Put(m)
}

// add copies a row's data, for scan to take it. Where it has no room the rows before it stay where they are, and are
// garbage with the page.
func (m *pageMemory) add(data []byte) {
	need := len(data) + tagSize
	if cap(m.bytes)-len(m.bytes) < need {
		m.grown = m.grown || len(m.bytes) > 0
		m.bytes = make([]byte, 0, max(need, cap(m.bytes)))
	}
	at := len(m.bytes)
	m.row = m.bytes[at : at+len(data) : at+need]
	copy(m.row, data)
}

// take makes the row that was added last one of the page's: a query that is begun again adds its first row twice.
func (m *pageMemory) take() []byte {
	row := m.row
	m.bytes, m.row = m.bytes[:len(m.bytes)+len(row)], nil
	return row
}

// scan adds the chunks of the row whose data was added last.
func (m *pageMemory) scan(rows *sql.Rows, key *dataKey) error {
	p, length := piece{data: m.take()}, 0
	err := rows.Scan(&p.pos, &p.start, &p.sizes, &length, &p.cipher)
	if err != nil {
		return err
	}
	if length != len(p.data) {
		return fmt.Errorf("at position %d: %d bytes, and %d were added", p.pos, length, len(p.data))
	}
	if p, err = p.open(key); err != nil {
		return err
	}
	if n := len(m.chunks); n > 0 && p.pos != m.chunks[n-1].Pos+1 {
		return fmt.Errorf("no chunk %d, but %d", m.chunks[n-1].Pos+1, p.pos)
	}
	m.chunks, err = p.unpack(m.chunks)
	return err
}

// joined is the data of n chunks after the first ones; nil where it is not in one place.
func (m *pageMemory) joined(first, n int) []byte {
	if m.grown {
		return nil
	}
	at := sizeOf(m.chunks[:first])
	end := at + sizeOf(m.chunks[first:first+n])
	return m.bytes[at:end:end]
}

// sizeOf is how many bytes chunks have, whatever their rows say of where they are.
func sizeOf(chunks []buffer.Chunk) (n int) {
	for _, c := range chunks {
		n += len(c.Data)
	}
	return n
}
