package console

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/tail"
)

const (
	pageBytes  = 512 << 10 // of an answer, that stand in its page as it comes
	pageEvents = 100       // raw events, of those the last
	eventBytes = 2 << 10   // of one raw event
)

// event is a chunk as it came, as far as a person wants to read it.
type event struct {
	Pos  int64  `json:"pos"`
	Text string `json:"text"`
}

// transcript is a stretch of an answer: what it says, and its events.
type transcript struct {
	Pieces   []provider.Piece `json:"pieces"`
	Events   []event          `json:"events"`
	From     int64            `json:"-"`
	Next     int64            `json:"next"` // the position after it
	More     bool             `json:"-"`    // there is more of it than was read
	Released bool             `json:"-"`

	bytes int64
}

// take adds the chunks of one page.
func (t *transcript) take(page *buffer.Page) {
	for _, c := range page.Chunks {
		for _, p := range provider.Pieces(page.Run.Dialect, page.Run.Framing, c.Data) {
			t.say(p)
		}
		if len(t.Events) == pageEvents {
			t.Events = append(t.Events[:0], t.Events[1:]...)
		}
		t.Events = append(t.Events, event{c.Pos, raw(c.Data)})
		t.Next = c.Pos + 1
		t.bytes += int64(len(c.Data))
	}
}

// say adds a piece; neighbours of one kind become one.
func (t *transcript) say(p provider.Piece) {
	if n := len(t.Pieces); n > 0 && t.Pieces[n-1].Kind == p.Kind {
		t.Pieces[n-1].Text += p.Text
		return
	}
	t.Pieces = append(t.Pieces, p)
}

// raw is a chunk as text; what is none is shown in hexadecimal.
func raw(b []byte) string {
	cut := b[:min(len(b), eventBytes)]
	for len(cut) < len(b) && len(cut) > 0 && !utf8.RuneStart(b[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	if !utf8.Valid(cut) {
		return hex.Dump(cut[:min(len(cut), eventBytes/8)])
	}
	text := strings.TrimRight(string(cut), "\r\n")
	if len(cut) < len(b) {
		text += "… (" + size(int64(len(b))) + ")"
	}
	return text
}

// transcribed reads what is stored of an answer from a position on, up to what a page holds.
func (c *Console) transcribed(ctx context.Context, run buffer.Run, from int64) (transcript, error) {
	from = min(max(from, 0), run.Head)
	t := transcript{From: from, Next: from, Released: run.State == buffer.Released}
	if t.Released { // swept or not
		return t, nil
	}
	cursor := tail.New(c.Store, run.ID, from)
	cursor.Bound(c.Pages)
	defer cursor.Close()
	for t.bytes < pageBytes {
		page, err := cursor.Poll(ctx)
		switch {
		case errors.Is(err, buffer.ErrReleased):
			t.Released = true
			return t, nil
		case err == io.EOF, err == nil && len(page.Chunks) == 0:
			return t, nil
		case err != nil:
			return t, err
		}
		t.take(page)
	}
	t.More = t.Next < run.Head
	return t, nil
}
