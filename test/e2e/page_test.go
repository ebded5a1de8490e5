package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/rig"
)

// pageEvent is an event as EventSource hands it to a page.
type pageEvent struct{ name, data, id string }

// page reads an event stream as the HTML standard says, byte for byte: what it makes of a stream is
// what a browser makes of it.
type page struct {
	t     *testing.T
	resp  *http.Response
	in    *bufio.Reader
	retry string
	id    string // the last one, with which it would come back
	cr    bool   // the last line ended on a CR: an LF still belongs to it
	begun bool
}

// listen opens an event stream, which must be one. It ends with the test.
func listen(t *testing.T, g *rig.Rig, path string, headers ...string) *page {
	t.Helper()
	resp := g.Open("GET", path, "", headers...)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body) // for people
		t.Fatalf("%s: %d, %s: %s", path, resp.StatusCode, resp.Header.Get("Content-Type"), b)
	}
	return &page{t: t, resp: resp, in: bufio.NewReader(resp.Body)}
}

func (p *page) line() (string, error) {
	var line strings.Builder
	for {
		c, err := p.in.ReadByte()
		if err != nil {
			return "", err
		}
		after := p.cr
		p.cr = c == '\r'
		switch {
		case c == '\n' && after:
		case c == '\n' || c == '\r':
			text := line.String()
			if !p.begun {
				p.begun, text = true, strings.TrimPrefix(text, "\ufeff")
			}
			return text, nil
		default:
			line.WriteByte(c)
		}
	}
}

// next is the next event that a page would get; false at a clean end.
func (p *page) next() (pageEvent, bool) {
	p.t.Helper()
	var name string
	var data []string
	for {
		line, err := p.line()
		if err == io.EOF {
			return pageEvent{}, false
		}
		if err != nil {
			p.t.Fatal("the stream broke:", err)
		}
		if line == "" {
			if data == nil {
				name = ""
				continue
			}
			if name == "" {
				name = "message"
			}
			return pageEvent{name, strings.Join(data, "\n"), p.id}, true
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = append(data, value)
		case "id":
			p.id = value
		case "retry":
			p.retry += value + " "
		}
	}
}

// rest is every event up to the end of the stream.
func (p *page) rest() []pageEvent {
	p.t.Helper()
	var all []pageEvent
	for {
		e, ok := p.next()
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

// until is every event up to the first of that name, which is the last one.
func (p *page) until(name string) []pageEvent {
	p.t.Helper()
	var all []pageEvent
	for {
		e, ok := p.next()
		if !ok {
			p.t.Fatalf("the stream ended before %s: %v", name, all)
		}
		if all = append(all, e); e.name == name {
			return all
		}
	}
}

// field is one field of an event's data.
func (e pageEvent) field(t *testing.T, name string) any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(e.data), &fields); err != nil {
		t.Fatalf("%s has %q: %v", e.name, e.data, err)
	}
	return fields[name]
}

// only are the events of these names.
func only(all []pageEvent, names ...string) []pageEvent {
	var some []pageEvent
	for _, e := range all {
		for _, n := range names {
			if e.name == n {
				some = append(some, e)
			}
		}
	}
	return some
}
