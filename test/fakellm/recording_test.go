package fakellm_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// The small set in the repository is whole and of many dialects, whatever set other tests use.
func small(t *testing.T) []fakellm.Recording {
	t.Helper()
	all, err := fakellm.ReadRecordings("../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecordings_KnowTheirDialectAndPath(t *testing.T) {
	dialects := make(map[string]int)
	for _, r := range append(small(t), fakellm.Recordings(t)...) {
		dialects[r.Dialect]++
		if r.Status != 200 || len(r.Body) == 0 || !strings.HasPrefix(r.Path, "/") {
			t.Errorf("%s: %d, %d bytes, %s", r.Name, r.Status, len(r.Body), r.Path)
		}
		if r.Dialect == "generic" && !strings.Contains(r.Name, "cohere") && !strings.Contains(r.Name, "_runs") {
			t.Errorf("%s is of no known family", r.Name)
		}
		for name := range r.Header {
			if http.CanonicalHeaderKey(name) == "Content-Length" || http.CanonicalHeaderKey(name) == "Content-Encoding" {
				t.Errorf("%s keeps %s", r.Name, name)
			}
		}
	}
	for _, d := range []string{"openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "bedrock_invoke", "generic"} {
		if dialects[d] == 0 {
			t.Errorf("no recording of %s", d)
		}
	}
}

func TestRecordings_AreServedByteForByte(t *testing.T) {
	all := fakellm.Recordings(t)
	srv := fakellm.Start(t, fakellm.Config{Recordings: all})
	c := client(t, nil)
	for _, r := range all {
		for _, chunk := range []int{1, 7, 37, 4096} {
			if len(r.Body)/chunk > 1000 {
				continue // a write for each piece: the large ones say nothing new
			}
			got := post(t, c, fmt.Sprintf("%s/%s,chunk=%d%s", srv.URL, r.Name, chunk, r.Path), "{}")
			if got.status != r.Status || got.err != nil || !bytes.Equal(got.body, r.Body) {
				t.Errorf("%s in pieces of %d: %d, %d bytes of %d, %v", r.Name, chunk, got.status, len(got.body), len(r.Body), got.err)
			}
			for name, values := range r.Header {
				if strings.Join(got.header.Values(name), "\n") != strings.Join(values, "\n") {
					t.Errorf("%s: %s is %q, want %q", r.Name, name, got.header.Values(name), values)
				}
			}
		}
	}
	// net/http may dial once more when it wants a connection before it has taken one back.
	if n, requests := srv.Connections(), srv.Count(""); n > requests/10 {
		t.Errorf("got %d connections for %d requests, want them kept alive", n, requests)
	}
}

func TestRecordings_CanBeCut(t *testing.T) {
	all := small(t)
	r := all[0]
	srv := fakellm.Start(t, fakellm.Config{Recordings: all})
	c := client(t, nil)
	for _, tt := range []struct {
		opts   string
		status int
		bytes  int
		err    error
	}{
		{"", 200, len(r.Body), nil},
		{",end=100", 200, 100, nil},
		{",end=0", 200, 0, nil},
		{",end=99999999", 200, len(r.Body), nil},
		{",cut=100", 200, 100, syscall.ECONNRESET},
		{",cut=100,chunk=33,ms=1", 200, 100, syscall.ECONNRESET},
		{",cut=99999999", 200, len(r.Body), syscall.ECONNRESET},
	} {
		got := post(t, c, srv.URL+"/"+r.Name+tt.opts+"/x", "")
		if got.status != tt.status || !bytes.Equal(got.body, r.Body[:tt.bytes]) || !errors.Is(got.err, tt.err) {
			t.Errorf("%q: got %d, %d bytes, %v", tt.opts, got.status, len(got.body), got.err)
		}
	}
	for _, bad := range []string{",cut", ",cut=x", ",chunk=-1", ",speed=1"} {
		if got := post(t, c, srv.URL+"/"+r.Name+bad+"/x", ""); got.status != http.StatusBadRequest {
			t.Errorf("%q: got %d", bad, got.status)
		}
	}
}

func TestReadRecordings_NeedsSome(t *testing.T) {
	if _, err := fakellm.ReadRecordings(t.TempDir()); err == nil {
		t.Error("an empty folder is no set of recordings")
	}
}
