package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/rig"
)

// To leave, by cancelling or by closing, is no cut: nothing is repaired, and the run ends only if its
// own policy says so.
func TestTransport_LeavingIsUpToTheRunsPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy string
		want         buffer.State
		leave        func(cancel func(), body io.Closer)
	}{
		{"cancelled, policy continue", "continue", buffer.Completed, func(cancel func(), _ io.Closer) { cancel() }},
		{"closed, policy continue", "continue", buffer.Completed, func(_ func(), body io.Closer) { body.Close() }},
		{"cancelled, policy cancel", "cancel", buffer.Cancelled, func(cancel func(), _ io.Closer) { cancel() }},
		{"closed, policy cancel", "cancel", buffer.Cancelled, func(_ func(), body io.Closer) { body.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := speeches()[0]
			gate := make(chan struct{})
			a := newAgent(t, rig.Options{}, cutter.Whole)
			a.Fake.Script("primary", s.gated(4, gate))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := a.http.Do(a.request(ctx, s.path, asked, "X-Buffer-On-Disconnect", tt.policy))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, len(s.first(4)))); err != nil {
				t.Fatal(err)
			}
			tt.leave(cancel, resp.Body)
			_, err = resp.Body.Read(make([]byte, 1))
			if !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("then it reads %v", err)
			}
			id := resp.Header.Get("X-Buffer-Run-Id")
			if tt.want == buffer.Completed {
				close(gate)
			}
			if run := a.Await(id, buffer.Completed, buffer.Cancelled, buffer.Interrupted); run.State != tt.want {
				t.Errorf("the run is %s", run.State)
			}
			resp.Body.Close()
		})
	}
}

// A deadline before the answer is the caller's too.
func TestTransport_CancelledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	defer close(gate)
	s := speeches()[0]
	a := newAgent(t, rig.Options{}, cutter.Whole)
	a.Fake.Script("primary", s.gated(0, gate))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = a.Fake.Await(t.Context(), func(r []fakeRequest) bool { return len(r) > 0 }) // the test ends it
		cancel()
	}()
	if _, err := a.http.Do(a.request(ctx, s.path, asked)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A read that waits for a repair ends with its context, and with a Close by another goroutine.
func TestStream_RepairEndsWithItsReader(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(cancel func(), body io.Closer){
		"cancelled": func(cancel func(), _ io.Closer) { cancel() },
		"closed":    func(_ func(), body io.Closer) { body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := speeches()[0]
			gate := make(chan struct{})
			defer close(gate)
			tried := make(chan struct{}, 1000)
			a := newAgent(t, rig.Options{}, func(n int) cutter.Cut {
				if n == 0 {
					return cutter.Whole(n)
				}
				tried <- struct{}{}
				return cutter.Answer(0)
			})
			a.transport.Patience.Tries = 1 << 20
			a.Fake.Script("primary", s.gated(4, gate))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := a.http.Do(a.request(ctx, s.path, asked))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			read := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, resp.Body)
				read <- err
			}()
			a.cutter.Drop()
			<-tried
			leave(cancel, resp.Body)
			if err := <-read; !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("%v", err)
			}
		})
	}
}
