package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
)

// form is how chunks are printed.
type form int

const (
	lineForm form = iota // a line for each
	textForm             // what they say
	jsonForm             // a JSON object for each
	rawForm              // as they are
)

// printer prints the chunks of one answer.
type printer struct {
	out     io.Writer
	form    form
	dialect provider.Dialect
	kind    frame.Kind
	last    provider.PieceKind
	open    bool // a line of text has begun
}

// printed is a chunk as JSON.
type printed struct {
	Position int64            `json:"position"`
	Data     string           `json:"data"`
	Pieces   []provider.Piece `json:"pieces"`
}

func (p *printer) chunk(pos int64, data []byte) error {
	var err error
	switch p.form {
	case rawForm:
		_, err = p.out.Write(data)
	case textForm:
		err = p.say(provider.Pieces(p.dialect, p.kind, data))
	case jsonForm:
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		pieces := provider.Pieces(p.dialect, p.kind, data)
		if pieces == nil {
			pieces = []provider.Piece{}
		}
		err = enc.Encode(printed{pos, string(data), pieces})
	default:
		_, err = fmt.Fprintf(p.out, "%d\t%s\n", pos, plain(strings.TrimRight(string(data), "\r\n")))
	}
	return err
}

// say prints pieces one after the other. What is not the answer itself begins with its kind, on a line
// of its own.
func (p *printer) say(pieces []provider.Piece) error {
	for _, piece := range pieces {
		var b strings.Builder
		if piece.Kind != p.last && (p.last != "" || piece.Kind != provider.PieceText) {
			if p.open {
				b.WriteString("\n")
			}
			if piece.Kind != provider.PieceText {
				fmt.Fprintf(&b, "[%s] ", piece.Kind)
			}
		}
		b.WriteString(harmless(piece.Text))
		p.last, p.open = piece.Kind, !strings.HasSuffix(piece.Text, "\n")
		if _, err := io.WriteString(p.out, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// plain is text that stays on its line and in its column.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// harmless is text without what would steer a terminal: a model's words are not to be trusted.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
