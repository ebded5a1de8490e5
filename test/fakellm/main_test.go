package fakellm_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spool-dev/spool/test/fakellm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns an http.Client of its own, whose connections end with the test.
func client(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	t.Helper()
	tr := &http.Transport{DialContext: dial, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// seen is what a client got.
type seen struct {
	status int
	header http.Header
	body   []byte
	err    error // of the call or of the reading
}

func post(t *testing.T, c *http.Client, url, body string) seen {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return seen{resp.StatusCode, resp.Header, b, err}
}

func join(events [][]byte) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(e)
	}
	return b.String()
}

func parse(t *testing.T, script string) []fakellm.Op {
	t.Helper()
	ops, err := fakellm.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return ops
}
