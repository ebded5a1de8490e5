package api

import (
	"context"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
)

// pageEach has a page for each of its chunks, and writes over one that is given back.
type pageEach struct {
	buffer.Store
	chunks []string
}

func (s *pageEach) Read(_ context.Context, _ ulid.ULID, from int64, max int) (buffer.Page, error) {
	page := buffer.Page{Run: buffer.Run{State: buffer.Completed, Framing: frame.SSE, Head: int64(len(s.chunks))}}
	if from < page.Run.Head && max > 0 {
		data := []byte(s.chunks[from])
		page.Chunks = []buffer.Chunk{{Pos: from, Data: data}}
		page.Recycle = func() { clear(data) }
	}
	return page, nil
}

func TestLastObject_OutlivesItsPage(t *testing.T) {
	const object = `{"object":"response","status":"completed"}`
	store := &pageEach{chunks: []string{
		"data: {\"type\":\"response.created\",\"response\":{\"object\":\"response\"}}\n\n",
		"data: {\"type\":\"response.completed\",\"response\":" + object + "}\n\n",
		"data: [DONE]\n\n",
	}}
	_, got, err := (&Server{Store: store}).lastObject(t.Context(), buffer.Run{Head: int64(len(store.chunks))})
	if err != nil || string(got) != object {
		t.Errorf("%q, %v", got, err)
	}
}
