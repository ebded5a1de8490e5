package provider

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer/frame"
)

// readSSE reads one SSE block.
func (r *Reader) readSSE(chunk []byte) Mark {
	if r.pending() {
		return r.readUnframed(chunk)
	}
	var b block
	b, r.scratch = parseBlock(chunk, r.scratch)
	if b.lines == 0 && b.stray && b.name == "" {
		return r.readStray(chunk)
	}
	if b.lines > 1 && !valid(b.data) {
		return r.readLines(chunk, b.name)
	}
	return r.readData(b.name, b.data)
}

// readLines reads events between which the provider forgot the blank line.
func (r *Reader) readLines(chunk []byte, name string) Mark {
	var sum Mark
	eachData(chunk, func(data string) { sum.add(r.readData(name, data)) })
	return sum
}

// add makes m the mark of a chunk that holds one more event.
func (m *Mark) add(next Mark) {
	m.Content = m.Content || next.Content
	m.Finish = m.Finish || next.Finish
	m.Final = m.Final || next.Final
	m.Failed = m.Failed || next.Failed
}

// readStray reads bytes that stand in an SSE stream and are none of it. Some providers answer with
// plain JSON though a stream was announced, or put a raw error behind the events.
func (r *Reader) readStray(chunk []byte) Mark {
	text := strings.TrimLeft(strings.TrimPrefix(view(chunk), "\ufeff"), " \t\r\n")
	if r.judged || text == "" || !strings.ContainsRune("{[<", rune(text[0])) {
		return Mark{} // no client of SSE sees it
	}
	if r.known && r.dialect == Gemini { // its errors come so, and nothing else does
		return r.fail(strings.TrimSpace(text))
	}
	return r.readUnframed(chunk)
}

// readElement reads one element of a JSON array, with the punctuation that its chunk holds.
func (r *Reader) readElement(chunk []byte) Mark {
	text := strings.TrimSpace(strings.TrimPrefix(view(chunk), "\ufeff"))
	if !r.judged && !r.known && !r.strange && text != "" && text[0] != '[' && text[0] != ',' {
		return r.readUnframed(chunk) // no array at all
	}
	if r.pending() {
		return r.readUnframed(chunk)
	}
	element := strings.Trim(text, "[], \t\r\n")
	return r.readData("", element)
}

// readData reads the payload of one event, as all dialects do: pings, errors and what is not JSON
// mean the same in each.
func (r *Reader) readData(name, data string) Mark {
	switch {
	case name == "error":
		return r.fail(data)
	case data == "", name == "ping", name == "keepalive":
		return Mark{Comment: true}
	case data == "[DONE]":
		return r.readDone()
	case !valid(data):
		return r.unknown()
	}
	return r.event(r, name, data)
}

// readDone reads [DONE]. It is chat's own proof; elsewhere it is one only for a shape that is not
// the dialect's.
func (r *Reader) readDone() Mark {
	if r.dialect == OpenAIChat || r.dialect == Generic || !r.known && r.strange {
		return r.conclude()
	}
	return Mark{}
}

// unknown is the mark of a payload that the dialect does not name: it is content, so that nothing is
// held back or bought again that is merely not known.
func (r *Reader) unknown() Mark {
	r.strange = true
	r.advance(strayChoice, true, false)
	return Mark{Content: true}
}

// readWhole reads a body that came in one piece.
func (r *Reader) readWhole(body string) Mark {
	r.whole = true
	text := strings.TrimSpace(strings.TrimPrefix(body, "\ufeff"))
	if page, _ := looksLikePage(text); page && (r.stream || r.dialect != Generic) {
		return r.fail(text)
	}
	switch {
	case r.dialect == Generic:
		r.strange = r.strange || text != ""
		return Mark{Content: text != ""}
	case text == "":
		return Mark{}
	case valid(text):
	case text[0] == '{' || text[0] == '[':
		return Mark{} // half an answer: nothing that was shown, nothing that is proven
	default:
		r.strange = true
		return Mark{Content: true}
	}
	m := r.readJSON(text)
	if m.Failed {
		return m
	}
	m.Content = true
	if r.armed() {
		r.final, m.Final = true, true // nothing of it is missing
	}
	return m
}

// readJSON reads a whole JSON body: one answer, or an array of a stream's events.
func (r *Reader) readJSON(text string) Mark {
	if text[0] != '[' {
		return r.event(r, "", text)
	}
	var sum Mark
	gjson.Parse(text).ForEach(func(_, element gjson.Result) bool {
		m := r.event(r, "", element.Raw)
		sum.Content, sum.Failed = sum.Content || m.Content, sum.Failed || m.Failed
		return true
	})
	return sum
}

// readUnframed reads a piece of a body whose framing is not known. What begins like JSON or like a
// page is held until it can be judged; everything else is content as it comes.
func (r *Reader) readUnframed(chunk []byte) Mark {
	if r.judged && r.whole && !r.final && r.failure == nil && bytes.HasPrefix(bytes.TrimLeft(chunk, " \t\r\n"), []byte("{")) {
		r.whole, r.lined = false, true // the whole answer was but the first line
	}
	if r.lined {
		return r.readJSONLines(chunk)
	}
	if r.judged || r.kind == frame.Opaque && r.dialect == Generic && !r.stream {
		return r.passed(len(chunk))
	}
	r.unframed = append(r.unframed, chunk...)
	text := strings.TrimSpace(strings.TrimPrefix(view(r.unframed), "\ufeff"))
	if text == "" {
		return Mark{}
	}
	page, sure := looksLikePage(text)
	json := r.dialect != Generic && (text[0] == '{' || text[0] == '[')
	switch {
	case page || json && closes(text) && valid(text):
		r.judged = true
		r.chunk = r.unframed // an error in it may have come in several chunks
		m := r.readWhole(text)
		r.unframed = nil
		return m
	case json && lined(text):
		r.judged, r.lined = true, true
		return r.readJSONLines(nil)
	case (json || !sure) && len(r.unframed) < maxUnframed:
		return Mark{}
	}
	n := len(r.unframed)
	r.judged, r.unframed = true, nil
	return r.passed(n)
}

// lined reports whether text begins with a line that is a JSON object by itself, and goes on: NDJSON that
// was announced as something else.
func lined(text string) bool {
	line, rest, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	return rest != "" && strings.HasPrefix(line, "{") && closes(line) && valid(line)
}

// readJSONLines reads the lines that are whole by now. The last one may lack its end.
func (r *Reader) readJSONLines(chunk []byte) Mark {
	r.unframed = append(r.unframed, chunk...)
	var sum Mark
	for len(r.unframed) > 0 {
		line, rest, ended := bytes.Cut(r.unframed, []byte("\n"))
		text := strings.TrimSpace(strings.TrimPrefix(view(line), "\ufeff"))
		if !ended && !(text != "" && closes(text) && valid(text)) {
			break
		}
		r.chunk = line
		sum.add(r.readData("", text))
		r.unframed = rest
	}
	if n := len(r.unframed); n >= maxUnframed {
		r.lined, r.unframed = false, nil
		sum.add(r.passed(n))
	}
	return sum
}

// closes reports whether text could be a whole JSON value: a cheap question before the dear one.
func closes(text string) bool {
	last := text[len(text)-1]
	return last == '}' || last == ']'
}

// passed is the mark of n bytes that are content because nothing is known of them.
func (r *Reader) passed(n int) Mark {
	if n == 0 {
		return Mark{}
	}
	return r.unknown()
}
