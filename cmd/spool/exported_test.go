package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// collector takes spans over OTLP, and keeps them as they came.
type collector struct {
	*httptest.Server

	mu  sync.Mutex
	raw []byte
}

func newCollector() *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.raw = append(c.raw, body...)
		c.mu.Unlock()
	}))
	return c
}

// exported PATTERN… checks what the buffer has exported before it ended: names and words stand in it as they
// are.
func exported(ts *testscript.TestScript, _ bool, args []string) {
	c := of(ts).spans
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pattern := range args {
		if !matches(ts, pattern, string(c.raw)) {
			ts.Fatalf("nothing like %q in the %d bytes that were exported", pattern, len(c.raw))
		}
	}
}
