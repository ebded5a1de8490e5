package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

func TestHTTP2_ManyTailsOnOneConnection(t *testing.T) {
	g := rig.New(t, rig.Options{HTTP2: true})
	id, open, events := paced(t, g, 6, 0)
	var pages []*page
	for range 50 {
		p := listen(t, g, "/runs/"+id+"/events")
		p.until("up_to_date") // flushed, while nothing more comes
		if p.resp.ProtoMajor != 2 {
			t.Fatal(p.resp.Proto)
		}
		pages = append(pages, p)
	}
	attached(t, g, id, len(pages))
	pages[0].resp.Body.Close()
	attached(t, g, id, len(pages)-1)
	open()
	for _, p := range pages[1:] {
		if rest := p.rest(); len(only(rest, "message", "completed")) != len(events)-3+1 {
			t.Fatal(rest)
		}
	}
}

// resetStream is how net/http tells of a RST_STREAM: its own error becomes any type of this shape.
type resetStream struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (r resetStream) Error() string { return fmt.Sprintf("stream %d is reset: %d", r.StreamID, r.Code) }

func TestHTTP2_AnAbortResetsTheStream(t *testing.T) {
	g := rig.New(t, rig.Options{HTTP2: true})
	one := "data: " + word + "\n\n"
	id := told(t, g, "text/event-stream", one)
	a := g.Do("GET", "/runs/"+id+"/resume", "")
	if reset, ok := errors.AsType[resetStream](a.Err); string(a.Body) != one || !ok {
		t.Errorf("%q, %v (%v)", a.Body, a.Err, reset)
	}
	if a := g.Do("GET", "/runs/"+id, ""); a.Status != 200 {
		t.Error("the connection is gone:", a.Status)
	}
}

// On HTTP/2 a deadline that passes resets its stream, written to or not; on HTTP/1.1 it fails the end
// of the body. A run may be quiet for longer than a write may take.
func TestHTTP2_QuietForLongerThanAWrite(t *testing.T) {
	for _, two := range []bool{false, true} {
		g := rig.New(t, rig.Options{HTTP2: two, Limits: api.Limits{Write: 100 * time.Millisecond}})
		first := "data: " + word + "\n\n"
		gate := make(chan struct{})
		g.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Data(first), fakellm.Gate(gate), fakellm.Sleep(300*time.Millisecond), fakellm.Data("data: [DONE]\n\n")))
		call := g.Open("POST", "/generic/x", rig.ChatBody, "X-Buffer-Heartbeat", "off")
		id := call.Header.Get("X-Buffer-Run-Id")
		bytesOnly := g.Open("GET", "/runs/"+id+"/resume", "")
		p := listen(t, g, "/runs/"+id+"/events", "X-Buffer-Heartbeat", "off")
		p.until("up_to_date")
		close(gate)
		for name, a := range map[string]rig.Answer{"the caller": read(call), "resume": read(bytesOnly)} {
			if a.Err != nil || !bytes.HasSuffix(a.Body, []byte("[DONE]\n\n")) {
				t.Errorf("HTTP/2 %v: %s: %q, %v", two, name, a.Body, a.Err)
			}
		}
		if rest := p.rest(); rest[len(rest)-1].name != "completed" {
			t.Error(rest)
		}
	}
}

func TestHTTP2_AReaderThatDoesNotTakeIsCut(t *testing.T) {
	g := rig.New(t, rig.Options{HTTP2: true, Limits: api.Limits{Write: 100 * time.Millisecond}})
	big := bytes.Repeat([]byte("x"), 8<<20) // more than a stream's window and the sockets hold
	g.Fake.Script("primary", []fakellm.Op{{Kind: "json", Status: 200, Headers: map[string][]string{"Content-Type": {"text/plain"}}, Data: big}})
	call := g.Open("POST", "/generic/x", "{}")
	call.Body.Close()
	id := call.Header.Get("X-Buffer-Run-Id")
	g.Await(id, buffer.Completed)
	t.Run("HTTP/2", func(t *testing.T) {
		resp := g.Open("GET", "/runs/"+id+"/events", "")
		defer resp.Body.Close()
		attached(t, g, id, 0) // it was there, and nobody waits for it any longer
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Error("it looks whole")
		}
	})
	t.Run("HTTP/1.1", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /runs/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n\r\n", id)
		if _, err := conn.Read(make([]byte, 1)); err != nil { // it has begun
			t.Fatal(err)
		}
		attached(t, g, id, 0) // though next to nothing was taken
	})
}
