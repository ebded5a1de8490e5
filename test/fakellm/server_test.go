package fakellm_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

func TestScript_AnswersInTurnAndStaysWithTheLast(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("primary", []fakellm.Op{fakellm.JSON(500, "")}, []fakellm.Op{fakellm.JSON(200, "")})
	srv.Script("fallback", []fakellm.Op{fakellm.JSON(201, "")})
	srv.Script("primary/deep", []fakellm.Op{fakellm.JSON(202, "")})
	c := client(t, nil)
	for _, step := range []struct {
		path string
		want int
	}{
		{"/primary/v1", 500}, {"/fallback/v1", 201}, {"/primary", 200}, {"/primary?x=1", 200},
		{"/primary/deep/x", 202}, {"/primary/deeper", 200}, {"/primaryx", 404},
	} {
		if got := post(t, c, srv.URL+step.path, ""); got.status != step.want {
			t.Errorf("%s: got %d, want %d", step.path, got.status, step.want)
		}
	}
	for route, want := range map[string]int{"primary": 4, "/fallback/": 1, "primary/deep": 1, "primaryx": 1, "": 7, "none": 0} {
		if got := srv.Count(route); got != want {
			t.Errorf("Count(%q) = %d, want %d", route, got, want)
		}
	}
}

func TestServer_KeepsTheConnectionOnlyAfterACompleteAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         int
	}{
		{"json", `[{"op":"json","body":"{}"}]`, 1},
		{"done", `[{"op":"head"},{"op":"data","text":"a"},{"op":"done"}]`, 1},
		{"length", `[{"op":"head","framing":"length"},{"op":"data","text":"a"}]`, 1},
		{"end", `[{"op":"head"},{"op":"data","text":"a"},{"op":"end"}]`, 3},
		{"length and end", `[{"op":"head","framing":"length"},{"op":"data","text":"a"},{"op":"end"}]`, 3},
		{"close", `[{"op":"head","framing":"close"},{"op":"data","text":"a"},{"op":"done"}]`, 3},
		{"reset after the answer", `[{"op":"json","headers":{"connection":"close"}},{"op":"rst"}]`, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := fakellm.Start(t, fakellm.Config{})
			srv.Script("", parse(t, tt.script))
			c := client(t, nil)
			for range 3 {
				if got := post(t, c, srv.URL, "body"); got.err != nil {
					t.Fatal(got.err)
				}
			}
			if got := srv.Connections(); got != tt.want {
				t.Errorf("got %d connections, want %d", got, tt.want)
			}
		})
	}
}

func TestRequests_RecordWhatWasSent(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	c := client(t, nil)
	post(t, c, srv.URL+"/a/v1/chat/completions?x=1", `{"stream":true}`)
	req, err := http.NewRequest(http.MethodPut, srv.URL+"/b%2Fc", struct{ io.Reader }{strings.NewReader("chunked body")})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test", "yes")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	got := srv.Requests()
	if len(got) != 2 {
		t.Fatalf("got %d requests", len(got))
	}
	first, second := got[0], got[1]
	if first.Route != "a" || first.Target != "/a/v1/chat/completions?x=1" || string(first.Body) != `{"stream":true}` || first.Written == 0 || first.Conn != 1 {
		t.Errorf("first: %+v", first)
	}
	if second.Method != http.MethodPut || second.Target != "/b%2Fc" || string(second.Body) != "chunked body" ||
		second.Header.Get("X-Test") != "yes" || second.Header.Get("Transfer-Encoding") != "chunked" || second.Header.Get("Host") != srv.Addr() {
		t.Errorf("second: %+v", second)
	}
}

func TestRequests_TellWhetherThePeerLeft(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("left", []fakellm.Op{fakellm.Head("text/plain"), fakellm.Data("a"), fakellm.Hang(0)})
	srv.Script("read", fakellm.Stream("text/plain", fakellm.Data("a")))
	c := client(t, nil)
	c.Transport.(*http.Transport).DisableKeepAlives = true
	if got := post(t, c, srv.URL+"/read", ""); got.err != nil {
		t.Fatal(got.err)
	}
	resp, err := c.Post(srv.URL+"/left", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	err = srv.Await(t.Context(), func(r []fakellm.Request) bool {
		return len(r) == 2 && !r[0].Ended.IsZero() && !r[1].Ended.IsZero()
	})
	if err != nil {
		t.Fatal(err)
	}
	got := srv.Requests()
	if !got[0].Closed.IsZero() || got[1].Closed.IsZero() {
		t.Errorf("read to the end: closed %v; left: closed %v", got[0].Closed, got[1].Closed)
	}
}

func TestRequests_KeepTheLastAndCountAll(t *testing.T) {
	const n = 5000
	srv := fakellm.Start(t, fakellm.Config{})
	srv.Script("many", []fakellm.Op{fakellm.JSON(200, "")})
	conn, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var drain sync.WaitGroup
	drain.Go(func() { _, _ = io.Copy(io.Discard, conn) }) // ends with the connection, after the last answer
	w := bufio.NewWriter(conn)                            // pipelined: a request waits for the answer before it
	for i := range n {
		fmt.Fprintf(w, "GET /many/%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
	}
	fmt.Fprint(w, "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	drain.Wait()
	if srv.Count("many") != n || srv.Count("") != n+1 {
		t.Errorf("counted %d and %d", srv.Count("many"), srv.Count(""))
	}
	got := srv.Requests()
	if len(got) != 4096 || got[len(got)-1].Target != "/last" {
		t.Errorf("got %d requests, the last %q", len(got), got[len(got)-1].Target)
	}
}

func TestServer_ClosesWhatIsNotHTTP(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	for _, junk := range []string{"\x16\x03\x01\x02\x00", "GET\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"} {
		conn, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, junk+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(conn); len(b) > 0 { // a reset is as good as an end
			t.Errorf("%q: got %q", junk, b)
		}
		conn.Close()
	}
	if srv.Count("") != 0 {
		t.Errorf("counted %d requests", srv.Count(""))
	}
}

func TestServer_AnswersExpectContinue(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	conn, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(conn)
	if line, err := br.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q %v", line, err)
	}
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	if _, err := br.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v %v", resp, err)
	}
	resp.Body.Close()
}

func TestReport_ListsWhatWasAskedButNotItself(t *testing.T) {
	srv := fakellm.Start(t, fakellm.Config{})
	c := client(t, nil)
	post(t, c, srv.URL+"/primary/v1/messages", "hello")
	var got struct {
		Connections, Total int
		Counts             map[string]int
		Requests           []struct{ Route, Body string }
	}
	for range 2 {
		resp, err := c.Get(srv.URL + "/__requests")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(bytes.NewReader(b)).Decode(&got); err != nil {
			t.Fatal(err)
		}
	}
	if got.Connections != 1 || got.Total != 1 || got.Counts["primary"] != 1 || len(got.Requests) != 1 || got.Requests[0].Body != "hello" {
		t.Errorf("got %+v", got)
	}
}
