package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// Error is what Spool refuses a request with: docs/protocol.md, section 6.
type Error struct {
	Code       string        // one of wire's codes; empty where something else than Spool has answered
	Status     int           // of the response
	Detail     string        // for people
	Run        string        // the run it is about, where there is one
	Next       int64         // the run's head, for code ahead
	RetryAfter time.Duration // when to come again; 0 where nothing was said
}

func (e *Error) Error() string {
	about := ""
	if e.Run != "" {
		about = "run " + e.Run + ": "
	}
	if e.Code == "" {
		return fmt.Sprintf("spool: %sstatus %d: %s", about, e.Status, e.Detail)
	}
	return fmt.Sprintf("spool: %s%s: %s", about, e.Code, e.Detail)
}

// InterruptedError ends an answer whose run ended short of the provider's own end. All of the run
// that is stored was read before it.
type InterruptedError struct {
	Run    string // id
	State  string // interrupted, cancelled or failed
	Reason string // in the words of docs/protocol.md, section 7
	Next   int64  // the position of the first chunk that was not read
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("spool: run %s %s: %s; next position %d", e.Run, e.State, e.Reason, e.Next)
}

// GiveUpError says that an answer could not be had, or not be had on: patience has ended, or Spool
// has refused. The run may go on without its reader, and can be resumed from here.
type GiveUpError struct {
	Run   string // id; empty where Spool has not told it
	Key   string // the call's idempotency key; empty where a run was resumed by its id
	Next  int64  // the position of the first chunk that was not read whole
	Bytes int64  // how much was read
	Tries int    // to repair it, the last ones in a row that gained nothing
	Err   error  // the last failure
}

func (e *GiveUpError) Error() string {
	what := "run " + e.Run
	if e.Run == "" {
		what = "the call with key " + strconv.Quote(e.Key)
	}
	return fmt.Sprintf("spool: gave up on %s at position %d (byte %d) after %d tries: %v", what, e.Next, e.Bytes, e.Tries, e.Err)
}

// Unwrap returns the last failure.
func (e *GiveUpError) Unwrap() error { return e.Err }

// maxProblem is how much of an error's body is read, in bytes.
const maxProblem = 64 << 10

// problem reads a response that is no success, as an *Error, and closes it. Where the connection breaks
// before it is read, nobody knows what it was, and that is the error.
func problem(resp *http.Response) error {
	defer resp.Body.Close()
	e := &Error{Status: resp.StatusCode, Detail: http.StatusText(resp.StatusCode), Run: resp.Header.Get(wire.HeaderRunID), RetryAfter: retryAfter(resp)}
	e.Next, _ = strconv.ParseInt(resp.Header.Get(wire.HeaderNext), 10, 64) // absent but for code ahead
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		return e
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("spool: status %d: %w", resp.StatusCode, err)
	}
	var p wire.Problem
	if json.Unmarshal(b, &p) == nil {
		e.Code, e.Detail = p.Code, p.Detail
	}
	return e
}

// retryAfter is the header of that name, in either of its forms; 0 for none.
func retryAfter(resp *http.Response) time.Duration {
	v := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n > 0 && n < 1<<30 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// mayPass reports whether a later try may succeed where err was met: a connection that broke, or a
// server that cannot answer now.
func mayPass(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return passing(e.Status)
	}
	if _, ok := errors.AsType[*InterruptedError](err); ok || err == errAll {
		return false
	}
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return !unverified
}

func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
