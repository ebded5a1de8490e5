package provider

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer/frame"
)

// PieceKind says what a piece of an answer is.
type PieceKind string

// The kinds of pieces.
const (
	PieceText    PieceKind = "text"    // what the model says
	PieceThought PieceKind = "thought" // what it says to itself
	PieceTool    PieceKind = "tool"    // a tool that it calls: its name, then its arguments
	PieceRefusal PieceKind = "refusal" // why it does not answer
	PieceError   PieceKind = "error"   // what the provider says instead
)

// Piece is a part of what an answer says to a person.
type Piece struct {
	Kind PieceKind `json:"kind"`
	Text string    `json:"text"`
}

// Pieces returns what one chunk of an answer of dialect d in framing k says to a person, in order.
// Each chunk is read by itself, and of several choices the first alone. Nothing is kept of chunk.
func Pieces(d Dialect, k frame.Kind, chunk []byte) []Piece {
	var out pieces
	read := func(name, data string) { out.event(d, name, strings.TrimSpace(data)) }
	switch k {
	case frame.SSE:
		b, _ := parseBlock(chunk, nil)
		switch {
		case b.lines == 0 && b.stray:
			read("", view(chunk))
		case b.lines > 1 && !gjson.Valid(b.data): // the provider forgot the blank lines
			eachData(chunk, func(data string) { read(b.name, data) })
		case b.lines > 0:
			read(b.name, b.data)
		}
	case frame.JSONArray:
		read("", strings.Trim(view(chunk), "[], \t\r\n\ufeff"))
	case frame.AWS:
		if m, ok := parseMessage(chunk); ok {
			out.message(d, m)
		}
	default:
		read("", strings.TrimPrefix(view(chunk), "\ufeff"))
	}
	return out
}

// pieces are gathered from one chunk.
type pieces []Piece

// add takes a text; neighbours of one kind become one.
func (p *pieces) add(kind PieceKind, text string) {
	switch n := len(*p); {
	case text == "":
	case n > 0 && (*p)[n-1].Kind == kind:
		(*p)[n-1].Text += text
	default:
		*p = append(*p, Piece{kind, strings.Clone(text)})
	}
}

// said takes the strings at some paths of v.
func (p *pieces) said(kind PieceKind, v gjson.Result, paths ...string) {
	for _, path := range paths {
		p.add(kind, said(v.Get(path)))
	}
}

// called takes a tool's call. The name comes in a line of its own.
func (p *pieces) called(name, arguments gjson.Result) {
	if n := said(name); n != "" {
		p.add(PieceTool, "\n"+n+" ")
	}
	switch arguments.Type {
	case gjson.String:
		p.add(PieceTool, arguments.Str)
	case gjson.JSON:
		p.add(PieceTool, arguments.Raw)
	}
}

func (p *pieces) message(d Dialect, m message) {
	switch m.kind {
	case "exception", "error":
		if text := view(m.payload); text != "" {
			p.failed(text)
			return
		}
		p.add(PieceError, m.code+" "+m.text)
	default:
		p.event(d, m.event, view(m.payload))
	}
}

// event reads one event or body. What is no JSON is told as it is, where nothing better is known.
func (p *pieces) event(d Dialect, name, data string) {
	if data == "" || data == "[DONE]" || name == "ping" || name == "keepalive" {
		return
	}
	if !gjson.Valid(data) {
		if name == "error" {
			p.add(PieceError, data)
		} else {
			p.add(PieceText, data)
		}
		return
	}
	v := gjson.Parse(data)
	if v.IsArray() { // a stream that came in one piece
		v.ForEach(func(_, element gjson.Result) bool {
			p.event(d, name, element.Raw)
			return true
		})
		return
	}
	if name == "error" || said(v.Get("type")) == "error" || isError(v.Get("error")) || said(v.Get("__type")) != "" {
		p.failed(data)
		return
	}
	switch d {
	case OpenAIResponses:
		p.responses(v, name)
	case Anthropic:
		p.anthropic(v)
	case Gemini:
		p.gemini(v)
	case Bedrock:
		p.converse(v, name)
	case BedrockInvoke:
		p.invoke(v)
	case Ollama:
		p.ollama(v)
	default:
		p.chat(v)
	}
}

// failed takes the message of an error in any shape; the whole where it has none.
func (p *pieces) failed(data string) {
	for _, path := range []string{"error.message", "response.error.message", "message", "Message", "error", "detail"} {
		if text := said(gjson.Get(data, path)); text != "" {
			p.add(PieceError, text)
			return
		}
	}
	p.add(PieceError, data)
}
