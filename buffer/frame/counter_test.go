package frame_test

import (
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// However the pieces fall, a Counter has counted what a Scanner would have cut, and what it has not
// counted yet is what came since.
func TestCounter_CountsWhatAScannerCuts(t *testing.T) {
	random := newRand(t)
	for _, tt := range bodies {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Join(tt.chunks, "") + tt.partial
			c := frame.NewCounter(tt.kind)
			for rest := body; len(rest) > 0; {
				n := 1 + random.IntN(len(rest))
				c.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			got := scan(t, &script{data: []byte(body)}, tt.kind, 0)
			ended := int64(0)
			for _, chunk := range got.chunks[:min(int(c.Chunks()), len(got.chunks))] {
				ended += int64(len(chunk))
			}
			last := int64(len(got.chunks)) - 1 // it may be one only because the body ended
			if c.Chunks() < last && tt.kind != frame.Opaque || c.Chunks() > int64(len(got.chunks)) {
				t.Errorf("%d chunks, a scanner cuts %d", c.Chunks(), len(got.chunks))
			}
			if c.Pending() != int64(len(body))-ended {
				t.Errorf("%d bytes pending, want %d", c.Pending(), int64(len(body))-ended)
			}
		})
	}
}
