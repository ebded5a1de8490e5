package frame_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// benchBody is many small events.
var benchBody = bytes.Repeat([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a few tokens\"}}]}\n\n"), 20000)

// drain reads all chunks and returns their count.
func drain(t testing.TB, r io.Reader, k frame.Kind) int {
	t.Helper()
	s := frame.NewScanner(r, k, 0)
	for n := 0; ; n++ {
		if _, err := s.Next(); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestScanner_LargeChunkCostsLinearMemory(t *testing.T) {
	const size = 2 << 20
	line := strings.Repeat("x", size)
	message := make([]byte, size)
	binary.BigEndian.PutUint32(message, size)
	binary.BigEndian.PutUint32(message[8:], crc32.ChecksumIEEE(message[:8]))

	tests := []struct {
		kind frame.Kind
		body string
		want int
	}{
		{frame.SSE, "data: 1\n\ndata: " + strings.Repeat(line, 16) + "\n\ndata: 2\n\n", 3}, // 32 MiB
		{frame.NDJSON, "1\n\"" + line + "\"\n2\n", 3},
		{frame.JSONArray, "[1,\"" + line + "\",2]", 3},
		{frame.AWS, smallestMessage + string(message) + smallestMessage, 3},
		{frame.Whole, line, 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			bytes := allocated(func() {
				if got := drain(t, strings.NewReader(tt.body), tt.kind); got != tt.want {
					t.Errorf("%d chunks, want %d", got, tt.want)
				}
			})
			if most := uint64(4 * len(tt.body)); bytes > most {
				t.Errorf("allocated %d bytes for a body of %d, want at most %d", bytes, len(tt.body), most)
			}
		})
	}
}

func TestScanner_ManyLinesInOneChunkAreSeenOnce(t *testing.T) {
	// Each of these would take very long if every step looked at all that has come.
	const n = 1 << 18
	for name, body := range map[string]string{
		"LF only": strings.Repeat("x\n", n),
		"CR only": strings.Repeat("x\r", n),
	} {
		t.Run(name, func(t *testing.T) {
			if got := drain(t, strings.NewReader(body+"\r\n"), frame.SSE); got != 1 {
				t.Errorf("%d chunks, want 1", got)
			}
		})
	}
	t.Run("quotes only", func(t *testing.T) {
		if got := drain(t, strings.NewReader("["+strings.Repeat(`"" `, n)+"]"), frame.JSONArray); got != 1 {
			t.Errorf("%d chunks, want 1", got)
		}
	})
}

func TestScanner_SmallReadsShareBlocks(t *testing.T) {
	body := benchBody[:64<<10]
	for _, size := range []int{1, 60, 700} {
		got := allocated(func() { drain(t, &script{data: body, size: bySize(size)}, frame.SSE) })
		if most := uint64(2*len(body) + 8<<10); got > most {
			t.Errorf("reads of %d allocate %d bytes for %d, want at most %d", size, got, len(body), most)
		}
	}
}

func TestScanner_IdleStreamHoldsASmallBlock(t *testing.T) {
	const streams = 200
	var open []*frame.Scanner
	got := allocated(func() {
		for range streams {
			s := frame.NewScanner(&script{data: []byte("data: 1\n\n")}, frame.SSE, 0)
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
			open = append(open, s)
		}
	})
	if got > streams*8<<10 {
		t.Errorf("%d streams allocate %d bytes", len(open), got)
	}
}

func TestScanner_SmallChunksDoNotKeepALargeBlock(t *testing.T) {
	const size = 8 << 20
	body := "data: " + strings.Repeat("x", size) + "\n\n" + strings.Repeat("data: small\n\n", 20000)
	s := frame.NewScanner(strings.NewReader(body), frame.SSE, 0)
	if large, err := s.Next(); err != nil || len(large) < size {
		t.Fatalf("%d bytes, %v", len(large), err)
	}
	for range 10000 { // beyond the block that the large chunk was in
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	var now runtime.MemStats
	before := heapInUse(&now)
	small, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	if before > uint64(len(body)+size/2) {
		t.Errorf("%d bytes in use beside a body of %d", before, len(body))
	}
	runtime.KeepAlive(small)
	runtime.KeepAlive(s)
}

func heapInUse(m *runtime.MemStats) uint64 {
	runtime.GC()
	runtime.ReadMemStats(m)
	return m.HeapAlloc
}

// reader hides everything but Read, as a socket does.
type reader struct{ io.Reader }

func TestScanner_FlatOutStreamAllocatesHardlyAnything(t *testing.T) {
	events := bytes.Count(benchBody, []byte("\n\n"))
	allocs := testing.AllocsPerRun(3, func() { drain(t, reader{bytes.NewReader(benchBody)}, frame.SSE) })
	if perEvent := allocs / float64(events); perEvent > 0.01 {
		t.Errorf("%.4f allocations an event", perEvent)
	}
}

func BenchmarkScanner(b *testing.B) {
	bodies := []struct {
		name string
		kind frame.Kind
		body []byte
		size func() int // of a read
	}{
		{"sse", frame.SSE, benchBody, nil},
		{"sse-event-a-read", frame.SSE, benchBody, bySize(59)},
		{"ndjson", frame.NDJSON, bytes.ReplaceAll(benchBody, []byte("\n\n"), []byte("\n")), nil},
		{"array", frame.JSONArray, append(append([]byte("["), bytes.Repeat([]byte("{\"text\":\"a few tokens\"}\n,\r\n"), 20000)...), "1]"...), nil},
		{"aws", frame.AWS, bytes.Repeat([]byte(smallestMessage), 20000), nil},
		{"sse-32MiB", frame.SSE, append(append([]byte("data: "), bytes.Repeat([]byte("x"), 32<<20)...), "\n\n"...), nil},
	}
	for _, bb := range bodies {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.body)))
			chunks := 0
			for b.Loop() {
				s := frame.NewScanner(&script{data: bb.body, size: bb.size}, bb.kind, 0)
				for chunks = 0; ; chunks++ {
					if _, err := s.Next(); err != nil {
						break
					}
				}
			}
			b.ReportMetric(float64(chunks), "chunks/op")
		})
	}
}
