package sqlite

import (
	"bytes"
	"sync"
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// What a page points to stays as it is while others are read, and when its room has gone to another reader;
// the driver is held to it that each row's bytes are memory of their own.
func TestReplay_BytesOutliveTheirPage(t *testing.T) {
	s := openStore(t, Config{Dir: t.TempDir(), Window: -1})
	const runs, size = 4, 100_000
	whole := make([][]byte, runs)
	ids := make([]buffer.Run, runs)
	for i := range runs {
		log, r := started(t, s)
		ids[i] = r
		for at := range size / 100 {
			chunk := bytes.Repeat([]byte{byte('a' + i), byte(at)}, 50)
			whole[i] = append(whole[i], chunk...)
			must(t, log.Append(t.Context(), [][]byte{chunk}, buffer.Streaming, buffer.Closing{}))
		}
		must(t, log.Append(t.Context(), nil, buffer.Completed, buffer.Closing{}))
	}
	var readers sync.WaitGroup
	for i := range runs {
		readers.Go(func() {
			var parts [][]byte
			for from := int64(0); from < size/100; {
				page, err := s.Read(t.Context(), ids[i].ID, from, 8<<10)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range page.Chunks {
					parts = append(parts, c.Data)
				}
				from = page.Next(from)
				if page.Recycle == nil {
					t.Error("a page from the file keeps its room")
					return
				}
				page.Recycle()
			}
			if !bytes.Equal(bytes.Join(parts, nil), whole[i]) {
				t.Errorf("run %d reads otherwise than it was written", i)
			}
		})
	}
	readers.Wait()
	must(t, s.Close())
}
