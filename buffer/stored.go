package buffer

import "sync/atomic"

// stored counts what the drains of this process have committed.
type stored struct{ chunks, bytes atomic.Int64 }

func (s *stored) add(chunks, bytes int) {
	s.chunks.Add(int64(chunks))
	s.bytes.Add(int64(bytes))
}

// sizeOf is how many bytes the chunks have.
func sizeOf(chunks [][]byte) (n int) {
	for _, c := range chunks {
		n += len(c)
	}
	return n
}

// Stored is how many chunks and bytes this process has committed to the log.
func (rs *Runs) Stored() (chunks, bytes int64) {
	return rs.stored.chunks.Load(), rs.stored.bytes.Load()
}
