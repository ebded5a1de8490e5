package fakellm_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

// Every op as Go's own client sees it, on a real socket.
func TestOp_IsWhatTheClientSees(t *testing.T) {
	const head = `{"op":"head","status":200,"framing":"chunked","headers":{"content-type":"text/event-stream"}}`
	tests := []struct {
		name, script string
		status       int
		body         string
		err          error // the client's error is this
	}{
		{"json", `[{"op":"json","status":429,"headers":{"retry-after":"2"},"body":"{}"}]`, 429, "{}", nil},
		{"end", `[` + head + `,{"op":"data","text":"a"},{"op":"end"}]`, 200, "a", nil},
		{"done", `[` + head + `,{"op":"data","text":"a"},{"op":"done"}]`, 200, "a", nil},
		{"end without data", `[` + head + `,{"op":"end"}]`, 200, "", nil},
		{"data that is empty", `[` + head + `,{"op":"data","text":""},{"op":"data","text":"a"},{"op":"end"}]`, 200, "a", nil},
		{"data_b64", `[` + head + `,{"op":"data_b64","text":"AP8="},{"op":"end"}]`, 200, "\x00\xff", nil},
		{"sleep", `[` + head + `,{"op":"sleep","ms":1},{"op":"data","text":"a"},{"op":"end"}]`, 200, "a", nil},
		{"repeat", `[` + head + `,{"op":"repeat","count":3,"every_ms":1,"text":"ab"},{"op":"end"}]`, 200, "ababab", nil},
		{"cut", `[` + head + `,{"op":"cut","size":2,"text":"abcde"},{"op":"end"}]`, 200, "abcde", nil},
		{"fin", `[` + head + `,{"op":"data","text":"a"},{"op":"fin"}]`, 200, "a", io.ErrUnexpectedEOF},
		{"no end at all", `[` + head + `,{"op":"data","text":"a"}]`, 200, "a", io.ErrUnexpectedEOF},
		{"rst", `[` + head + `,{"op":"data","text":"a"},{"op":"rst"}]`, 200, "a", syscall.ECONNRESET},
		{"hang", `[` + head + `,{"op":"data","text":"a"},{"op":"hang","ms":1}]`, 200, "a", io.ErrUnexpectedEOF},
		{"hang before the head", `[{"op":"hang","ms":1}]`, 0, "", io.EOF},
		{"framing close", `[{"op":"head","framing":"close"},{"op":"data","text":"a"},{"op":"fin"}]`, 200, "a", nil},
		{"framing close, reset", `[{"op":"head","framing":"close"},{"op":"data","text":"a"},{"op":"rst"}]`, 200, "a", syscall.ECONNRESET},
		{"framing length", `[{"op":"head","framing":"length"},{"op":"data","text":"a"},{"op":"repeat","count":2,"text":"b"}]`, 200, "abb", nil},
		{"framing length, too short", `[{"op":"head","framing":"length","headers":{"content-length":"9"}},{"op":"data","text":"a"},{"op":"fin"}]`, 200, "a", io.ErrUnexpectedEOF},
		{"framing raw", `[{"op":"head","framing":"raw","headers":{"transfer-encoding":"chunked"}},{"op":"data","text":"1\r\na\r\n0\r\n\r\n"}]`, 200, "a", nil},
		{"data before a head", `[{"op":"data","text":"HTTP/1.1 418 T\r\nContent-Length: 1\r\n\r\na"}]`, 418, "a", nil},
		{"an interim head", `[{"op":"head","status":103},{"op":"json","body":"a"}]`, 200, "a", nil},
		{"no content", `[{"op":"head","status":204},{"op":"fin"}]`, 204, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := fakellm.Start(t, fakellm.Config{})
			srv.Script("primary", parse(t, tt.script))
			got := post(t, client(t, nil), srv.URL+"/primary/v1/messages", "{}")
			if got.status != tt.status || string(got.body) != tt.body || !errors.Is(got.err, tt.err) || tt.err == nil && got.err != nil {
				t.Errorf("got %d %q %v, want %d %q %v", got.status, got.body, got.err, tt.status, tt.body, tt.err)
			}
		})
	}
}

func TestOp_BrokenChunkIsAnError(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("", parse(t, `[{"op":"head","framing":"raw","headers":{"transfer-encoding":"chunked"}},{"op":"data","text":"zz\r\n"},{"op":"fin"}]`))
	if got := post(t, client(t, nil), srv.URL, ""); got.status != 200 || got.err == nil {
		t.Errorf("got %d %v, want 200 and an error", got.status, got.err)
	}
}

func TestOp_HeadersAreSentAsTheyAreWritten(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("", parse(t, `[{"op":"json","headers":{"set-cookie":["a=1","b=2"],"Content-Type":"text/plain"}}]`))
	got := post(t, client(t, nil), srv.URL, "")
	if v := got.header.Values("Set-Cookie"); len(v) != 2 || got.header.Get("Content-Type") != "text/plain" || len(got.header.Values("Content-Type")) != 1 {
		t.Errorf("got %v", got.header)
	}
}

// Each write is a read of the peer: over a pipe that is exact.
func TestCut_MakesTheBoundariesOfReads(t *testing.T) {
	srv, dial := fakellm.Pipe(t, fakellm.Config{})
	srv.Script("", append(fakellm.Cut([]byte("abcde"), 2), fakellm.Fin()))
	conn, err := dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var reads []string
	for buf := make([]byte, 64); ; {
		n, err := conn.Read(buf)
		if err != nil {
			break
		}
		reads = append(reads, string(buf[:n]))
	}
	if len(reads) != 3 || reads[0] != "ab" || reads[1] != "cd" || reads[2] != "e" {
		t.Errorf("got %q", reads)
	}
}

func TestGate_HoldsTheAnswerUntilItOpens(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	open := make(chan struct{})
	srv.Script("", fakellm.Stream("text/plain", fakellm.Data("a"), fakellm.Gate(open), fakellm.Data("b")))
	resp, err := client(t, nil).Post(srv.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 8)
	if n, err := resp.Body.Read(first); string(first[:n]) != "a" || err != nil {
		t.Fatalf("got %q %v before the gate", first[:n], err)
	}
	close(open)
	if rest, err := io.ReadAll(resp.Body); string(rest) != "b" || err != nil {
		t.Fatalf("got %q %v behind the gate", rest, err)
	}
}

// A peer that stops reading does not keep the server alive.
func TestClose_EndsAnAnswerThatIsStuckInAWrite(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("", []fakellm.Op{fakellm.Head("text/plain"), fakellm.Repeat(1<<30, 0, "0123456789abcdef"), fakellm.Hang(time.Hour)})
	conn, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	err = srv.Await(t.Context(), func(r []fakellm.Request) bool { return len(r) == 1 && r[0].Written > 0 })
	if err != nil {
		t.Fatal(err)
	}
	srv.Close()
}
