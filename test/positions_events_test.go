package test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// events listens to /events from each position, alone and beside another run: what a page has read and
// what it gets after its last id are together what one gets that never left.
func (p *played) events(t *testing.T) {
	t.Helper()
	id := p.run.ID.String()
	beside := p.Chat("Idempotency-Key", "beside "+id).RunID()
	p.Await(beside, buffer.Completed)
	path := "/runs/" + id + "/events"
	whole, err := io.ReadAll(p.listen(t, path, ""))
	if err != nil {
		t.Fatal(err)
	}
	after := p.after(whole)
	for pos, begin := range after {
		last := fmt.Sprintf("%s:%d", id, pos)
		p.joins(t, "/events after "+last, int64(pos), p.listen(t, path, last), whole[begin:], nil)
		ways := [][2]string{{fmt.Sprintf("/events?run=%s&run=%s", id, beside), last + "," + beside + ":0"}}
		if pos+1 < len(after) { // who starts at the head of a run that has ended is not told its end
			ways = append(ways, [2]string{fmt.Sprintf("/events?run=%s:%d&run=%s", id, pos+1, beside), ""})
		}
		for _, way := range ways {
			body := p.listen(t, way[0], way[1])
			p.joins(t, way[0]+" after "+way[1], int64(pos), closing{newOnly(body, beside), body}, whole[begin:], nil)
		}
	}
}

// listen is an event stream less its first line, which says when to come back, by chance.
func (p *played) listen(t *testing.T, path, last string) io.ReadCloser {
	t.Helper()
	body := p.get(t, path, "Last-Event-ID", last)
	retry := make([]byte, len("retry: 1234\n")) // from 1000 to 1999
	if _, err := io.ReadFull(body, retry); err != nil || !bytes.HasPrefix(retry, []byte("retry: 1")) {
		t.Fatalf("%s after %q: %q, %v", path, last, retry, err)
	}
	return body
}

// after is where in a whole event stream the events begin that follow each position. What has no data has
// no id, but is a block all the same, unless it is empty.
func (p *played) after(whole []byte) []int {
	after := make([]int, len(p.chunks))
	own := idPrefix(p.run.ID.String())
	at := 0
	for pos, c := range p.chunks {
		block, _, _ := bytes.Cut(whole[at:], blank)
		_, id, has := bytes.Cut(block, own)
		if has && string(id) == strconv.Itoa(pos) || !has && len(bytes.TrimSpace(c.Data)) > 0 {
			at += len(block) + len(blank)
		}
		after[pos] = at
	}
	return after
}

var blank = []byte("\n\n")

func idPrefix(run string) []byte { return []byte("\nid: " + run + ":") }

// only is an event stream of two runs less the events of one, and less those about both.
type only struct {
	from   io.Reader
	other  []byte
	taken  []byte // not yet a whole block
	blocks []byte // whole ones that nobody has read
	err    error
}

func newOnly(from io.Reader, other string) *only { return &only{from: from, other: idPrefix(other)} }

// Read implements io.Reader.
func (o *only) Read(b []byte) (int, error) {
	buf := make([]byte, 4<<10)
	for len(o.blocks) == 0 && o.err == nil {
		var n int
		n, o.err = o.from.Read(buf)
		o.taken = append(o.taken, buf[:n]...)
		end := bytes.LastIndex(o.taken, blank)
		if end < 0 {
			continue
		}
		end += len(blank)
		for block := range bytes.SplitAfterSeq(o.taken[:end], blank) {
			if !bytes.HasPrefix(block, []byte("event: positions\n")) && !bytes.Contains(block, o.other) {
				o.blocks = append(o.blocks, block...)
			}
		}
		o.taken = o.taken[end:]
	}
	if len(o.blocks) == 0 {
		return 0, o.err
	}
	n := copy(b, o.blocks)
	o.blocks = o.blocks[n:]
	return n, nil
}
