//go:build race

package sqlite

import (
	"bytes"
	"slices"
	"testing"
)

// Who reads on in a page that was given back is found out.
func TestReplay_WhatIsGivenBackIsPoisoned(t *testing.T) {
	s := openHidden(t, t.TempDir())
	r := written(t, s, 'x', 1000, 10)
	page, err := s.Read(t.Context(), r.ID, 0, 1<<20)
	must(t, err)
	chunks := slices.Clone(page.Chunks)
	page.Recycle()
	for _, c := range chunks {
		if !bytes.Equal(c.Data, bytes.Repeat([]byte{0xdb}, 1000)) {
			t.Errorf("chunk %d reads %x…", c.Pos, c.Data[:8])
		}
	}
	must(t, s.Close())
}
