package buffer_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
)

// secure is a provider that speaks HTTP/2 over TLS. Its i-th request is answered by answers[i], later
// ones by the last.
func secure(t *testing.T, answers ...http.HandlerFunc) (s *httptest.Server, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := int(asked.Add(1))
		if req.ProtoMajor != 2 {
			t.Errorf("request %d came by %s", n, req.Proto)
		}
		w.Header().Set("Content-Type", eventStream)
		answers[min(n, len(answers))-1](w, req)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are wanted here
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, asked
}

// says writes events, each as a frame of its own, and ends the stream as end does.
func says(end func(), events ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, e := range events {
			_, _ = w.Write(e) // a peer that has gone is no fault of the script
			_ = http.NewResponseController(w).Flush()
		}
		end()
	}
}

func properly() {}
func abruptly() { panic(http.ErrAbortHandler) } // RST_STREAM

func TestTLS_EveryStreamHasItsRow(t *testing.T) {
	for _, row := range []struct {
		name    string
		answers []http.HandlerFunc
		state   buffer.State
		reason  buffer.Reason
		sends   int
	}{
		{"good", []http.HandlerFunc{says(properly, role, token, finish, done)}, buffer.Completed, "", 1},
		{"aborted before content", []http.HandlerFunc{says(abruptly, role), says(properly, role, token, done)}, buffer.Completed, "", 2},
		{"aborted before the head", []http.HandlerFunc{says(abruptly), says(properly, role, token, done)}, buffer.Completed, "", 2},
		{"aborted after content", []http.HandlerFunc{says(abruptly, role, token), says(properly, role, token, done)}, buffer.Interrupted, buffer.Reset, 1},
		{"ended without proof", []http.HandlerFunc{says(properly, role, token), says(properly, role, token, done)}, buffer.Interrupted, buffer.EOFWithoutEnd, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, asked := secure(t, row.answers...)
			over := s.Client().Transport.(*http.Transport)
			over.DisableCompression = true
			r := newRig(t, s.URL, over)
			run := r.do(r.call())
			r.wantState(run, row.state, row.reason)
			if n := int(asked.Load()); n != row.sends || len(run.Attempts) != row.sends {
				r.Errorf("the provider got %d requests, the ledger has %d, want %d", n, len(run.Attempts), row.sends)
			}
		})
	}
}

// A peer that cannot prove who it is gets nothing, and asking again would not help.
func TestTLS_UnverifiedPeerGetsNothing(t *testing.T) {
	s, asked := secure(t, says(properly, role, token, done))
	r := newRig(t, s.URL, &http.Transport{DisableCompression: true, ForceAttemptHTTP2: true})
	run := r.do(r.call())
	r.wantState(run, buffer.Failed, buffer.Reset)
	r.wantLedger(run, entry{"primary", policy.Unknown, policy.Fail, policy.NotSent, policy.BilledNo})
	if a := run.Attempts[0]; asked.Load() != 0 || a.RequestBytes != 0 || run.Status != 502 {
		r.Errorf("%d requests, row %+v, status %d", asked.Load(), a, run.Status)
	}
}
