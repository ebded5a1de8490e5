//go:build failpoints

package main

import (
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// failpointVariable says where the process kills itself, as kill -9 would: STEP:WHEN:N is the N-th time
// that a step of a run's order comes. Of a step of the log WHEN is its own name (in the transaction),
// commit (before COMMIT) or committed; of the step send it is before, wrote or answered.
const failpointVariable = "SPOOL_FAILPOINT"

// failpoints are places where the process kills itself for a test; nil is none.
type failpoints struct{ *failpoint }

type failpoint struct {
	step, when string

	mu    sync.Mutex
	left  int  // times that the step is still to come
	armed bool // it has: the next WHEN is the one
}

func newFailpoints() (failpoints, error) {
	text := os.Getenv(failpointVariable)
	if text == "" {
		return failpoints{}, nil
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return failpoints{}, fmt.Errorf("%s: %q is not STEP:WHEN:N", failpointVariable, text)
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 1 {
		return failpoints{}, fmt.Errorf("%s: %q is not a number of times", failpointVariable, parts[2])
	}
	return failpoints{&failpoint{step: parts[0], when: parts[1], left: n}}, nil
}

// comes notes a place of the process's work, and does not return where it is the one.
func (f *failpoint) comes(step, when string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if step == f.step && !f.armed {
		f.left--
		f.armed = f.left == 0
	}
	if f.armed && when == f.when {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing comes after it
		select {}
	}
}

// log is the log's seam; nil is none.
func (f failpoints) log() func(sqlite.Point) error {
	if f.failpoint == nil {
		return nil
	}
	return func(p sqlite.Point) error {
		f.comes(string(p), string(p))
		return nil
	}
}

// over is the client with the failpoint on the way to the provider.
func (f failpoints) over(c *provider.Client) *provider.Client {
	if f.failpoint == nil || f.step != "send" {
		return c
	}
	return provider.NewClientOver(&sending{f.failpoint, c})
}

// sending is the step between the ledger and the first chunk.
type sending struct {
	point  *failpoint
	client *provider.Client
}

// RoundTrip implements http.RoundTripper.
func (s *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	s.point.comes("send", "before")
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { s.point.comes("", "wrote") }}
	resp, err := s.client.Transport().RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	s.point.comes("", "answered")
	return resp, err
}

// CloseIdleConnections closes those of the client.
func (s *sending) CloseIdleConnections() { s.client.CloseIdle() }
