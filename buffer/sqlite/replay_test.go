package sqlite

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// The memory of pages goes from one reader to the next. A page stays as it is until it is given back, and for ever
// where it is not, whatever others read meanwhile.
func TestReplay_APageIsGoodUntilItIsGivenBack(t *testing.T) {
	for name, keys := range map[string][]Key{"clear": nil, "encrypted": {key("one")}} {
		for _, size := range []int{100, 3000, segmentBytes, 300 << 10, pooledBytes + 1} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				s := openHidden(t, t.TempDir(), keys...)
				const runs = 4
				var all [runs]buffer.Run
				for i := range runs {
					all[i] = written(t, s, byte(i), size, max(5, 500_000/size))
				}
				var readers sync.WaitGroup
				for i := range 2 * runs {
					readers.Go(func() { replay(t, s, all[i%runs], byte(i%runs), size, i < runs) })
				}
				readers.Wait()
				must(t, s.Close())
			})
		}
	}
}

// written is an ended run of chunks of one size, all different.
func written(t *testing.T, s *Store, mark byte, size, chunks int) buffer.Run {
	t.Helper()
	log, r := started(t, s)
	all := make([][]byte, chunks)
	for pos := range all {
		all[pos] = chunkAt(mark, pos, size)
	}
	must(t, log.Append(t.Context(), all, buffer.Completed, buffer.Closing{}))
	r.Head = int64(chunks)
	return r
}

func chunkAt(mark byte, pos, size int) []byte {
	return bytes.Repeat([]byte{mark, byte(pos), byte(pos >> 8), 1}, size/4+1)[:size]
}

// replay reads a run some times, and looks at each page before it gives it back, or at the end.
func replay(t *testing.T, s *Store, r buffer.Run, mark byte, size int, keep bool) {
	var kept []buffer.Page
	for range 5 {
		for from := int64(0); from < r.Head; {
			page, err := s.Read(t.Context(), r.ID, from, 200<<10)
			if err != nil || page.Recycle == nil {
				t.Errorf("from %d: %v; recycles: %t", from, err, page.Recycle != nil)
				return
			}
			from = page.Next(from)
			if keep {
				kept = append(kept, page)
				continue
			}
			wantPage(t, page, mark, size)
			page.Recycle()
		}
	}
	for _, page := range kept {
		wantPage(t, page, mark, size)
	}
}

func wantPage(t *testing.T, page buffer.Page, mark byte, size int) {
	for _, c := range page.Chunks {
		if !bytes.Equal(c.Data, chunkAt(mark, int(c.Pos), size)) {
			t.Errorf("run %d reads otherwise than it was written at %d", mark, c.Pos)
			return
		}
	}
	if size < segmentBytes && page.Joined == nil {
		t.Errorf("run %d: a page of usual size is in several places", mark)
	}
	if page.Joined != nil && !bytes.Equal(page.Joined, join(page.Chunks)) {
		t.Errorf("run %d: what is joined is not what the chunks are", mark)
	}
}

func join(chunks []buffer.Chunk) (data []byte) {
	for _, c := range chunks {
		data = append(data, c.Data...)
	}
	return data
}

func TestPageMemory_RowsStayWhereTheyAre(t *testing.T) {
	m := takePageMemory(1, 10)
	var rows [][]byte
	for i := range 100 {
		m.add(make([]byte, i)) // for a query that is begun again
		m.add(bytes.Repeat([]byte{byte(i)}, i*i))
		row := m.take()
		rows = append(rows, row)
		if cap(row) < len(row)+tagSize {
			t.Errorf("row %d has no room for a tag", i)
		}
	}
	if m.joined(0, 0) != nil {
		t.Error("what lies in several places is taken for one")
	}
	for i, row := range rows {
		if !slices.Equal(row, bytes.Repeat([]byte{byte(i)}, i*i)) {
			t.Errorf("row %d was overwritten", i)
		}
	}
}

func TestPageMemory_KeepsNoLargeOne(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes int
		kept  bool
	}{
		{"a page", 256 << 10, true},
		{"a large chunk", 30 << 20, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := takePageMemory(1, 1)
			m.add(make([]byte, row.bytes))
			m.give()
			if got := m.bytes != nil; got != row.kept {
				t.Errorf("kept: %t", got)
			}
		})
	}
}
