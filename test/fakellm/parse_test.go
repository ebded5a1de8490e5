package fakellm_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spool-dev/spool/test/fakellm"
)

func TestParse_NamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"unknown op", `[{"op":"end"},{"op":"explode"}]`, `op 1: unknown op "explode"`},
		{"no op", `[{}]`, `op 0: unknown op ""`},
		{"a step of Go", `[{"op":"go"}]`, `unknown op "go"`},
		{"unknown framing", `[{"op":"head","framing":"fax"}]`, `unknown framing "fax"`},
		{"unknown field", `[{"op":"repeat","every":5}]`, `unknown field "every"`},
		{"bad base64", `[{"op":"data_b64","text":"?"}]`, `data_b64`},
		{"bad status", `[{"op":"head","status":42}]`, `status 42`},
		{"negative time", `[{"op":"sleep","ms":-1}]`, `below 0`},
		{"cut without size", `[{"op":"cut","text":"a"}]`, `size 0`},
		{"not a list", `{}`, `script`},
		{"not JSON", `[`, `script`},
		{"a header that is a number", `[{"op":"head","headers":{"a":1}}]`, `op 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := fakellm.Parse([]byte(tt.script)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestParseRoutes_NamesRouteAndAnswer(t *testing.T) {
	_, err := fakellm.ParseRoutes([]byte(`{"primary":[[],[{"op":"explode"}]]}`))
	if err == nil || !strings.HasPrefix(err.Error(), "primary[1]: op 0: ") {
		t.Errorf("got %v", err)
	}
}

func TestParseBugs_NamesTheBug(t *testing.T) {
	for _, tt := range []struct{ name, provider, want string }{
		{"op", `{"fallback":[[{"op":"explode"}]]}`, `bug B1: fallback[0]: op 0: unknown op "explode"`},
		{"limit", `{"limits":{"patience_ms":1}}`, `bug B1: unknown limit "patience_ms"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fakellm.ParseBugs([]byte(`{"bugs":[{"id":"B1","fake_provider":` + tt.provider + `}]}`))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func bugs(t *testing.T) []fakellm.Bug {
	t.Helper()
	file, err := os.ReadFile("../testdata/provider-scripts.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := fakellm.ParseBugs(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseBugs_TypesEveryField(t *testing.T) {
	all := bugs(t)
	byID := make(map[string]fakellm.Bug)
	for _, b := range all {
		byID[b.ID] = b
		if b.Symptom == "" || b.Correct == "" || b.URL == "" || b.Protocol == "" || b.Client.Behaviour == "" || len(b.Primary) == 0 ||
			b.Limits.Headers == 0 || b.Limits.Total == 0 || b.Expect.State == "" || len(b.Expect.Attempts) == 0 || len(b.Observed) == 0 {
			t.Errorf("%s lacks something: %+v", b.ID, b)
		}
	}
	if len(byID) != 40 {
		t.Fatalf("got %d bugs", len(byID))
	}
	if b := byID["B18"]; b.Expect.MinGapMS != 2000 || !b.Retry {
		t.Errorf("B18: %+v", b)
	}
	if b := byID["B23"]; b.Retry || len(b.Fallback) != 1 || len(b.Expect.MustNot) != 1 {
		t.Errorf("B23: %+v", b)
	}
	if b := byID["B38"]; b.Expect.Reason != "reset" || b.Expect.Metrics["interrupted"] != 1 || b.Limits.ByteIdle != 400*time.Millisecond {
		t.Errorf("B38: %+v", b)
	}
	if b := byID["B12"]; b.Client.Bytes != 200 || b.Expect.Ledger["total_tokens"] != 5 {
		t.Errorf("B12: %+v", b)
	}
}

// Each answer of each bug is played in a bubble, where waiting costs nothing, and must look to Go's
// client as it looked when the file was made.
func TestBugs_PlayAsObserved(t *testing.T) {
	for _, b := range bugs(t) {
		t.Run(b.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, dial := fakellm.Pipe(t, fakellm.Config{})
				srv.Script("primary", b.Primary...)
				srv.Script("fallback", b.Fallback...)
				c := client(t, dial)
				for _, want := range b.Observed {
					got := play(t, c, srv.URL+"/"+want.Route+"/v1", b.Client)
					if got.status != want.Status || len(got.body) != want.Bytes || !sameError(got.err, want.Err) {
						t.Errorf("%s[%d]: got %d, %d bytes, %v; want %+v", want.Route, want.Attempt-1, got.status, len(got.body), got.err, want)
					}
				}
				if got := srv.Count(""); got != len(b.Observed) {
					t.Errorf("got %d requests, want %d", got, len(b.Observed))
				}
			})
		})
	}
}

// play does what the bug's client does.
func play(t *testing.T, c *http.Client, url string, does fakellm.Client) seen {
	t.Helper()
	if does.Behaviour == "read_all" {
		return post(t, c, url, "{}")
	}
	resp, err := c.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, does.Bytes)
	n, err := io.ReadFull(resp.Body, b)
	return seen{status: resp.StatusCode, body: b[:n], err: err}
}

func sameError(err error, observed string) bool {
	switch observed {
	case "":
		return err == nil
	case "EOF":
		return errors.Is(err, io.EOF)
	case "unexpected EOF":
		return errors.Is(err, io.ErrUnexpectedEOF)
	case "read: connection reset by peer":
		return errors.Is(err, syscall.ECONNRESET)
	}
	return false
}
