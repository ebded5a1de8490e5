package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

type fakeRequest = fakellm.Request

func wantCode(t *testing.T, err error, code string) *client.Error {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("%v (%T), want code %s", err, err, code)
	}
	return e
}

func TestClient_StatusCancelAck(t *testing.T) {
	t.Parallel()
	a := newAgent(t, rig.Options{}, cutter.Whole)
	ctx := t.Context()
	gate := make(chan struct{})
	defer close(gate)
	s := speeches()[0]
	a.Fake.Script("primary", s.gated(3, gate))
	resp, err := a.http.Do(a.request(ctx, s.path, asked))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get(wire.HeaderRunID)

	run, err := a.client.Status(ctx, id)
	if err != nil || run.ID != id || run.State != "streaming" {
		t.Errorf("status: %s %s, %v", run.ID, run.State, err)
	}
	_, err = a.client.Ack(ctx, id)
	if e := wantCode(t, err, wire.CodeStillRunning); e.Status != 409 || e.Run != id {
		t.Errorf("%+v", e)
	}
	for range 2 {
		if run, err = a.client.Cancel(ctx, id); err != nil || run.State != "cancelled" {
			t.Errorf("cancel: %s, %v", run.State, err)
		}
	}
	for range 2 {
		if run, err = a.client.Ack(ctx, id); err != nil || run.State != "released" {
			t.Errorf("ack: %s, %v", run.State, err)
		}
	}
	_, err = a.client.Resume(ctx, id, 0)
	wantCode(t, err, wire.CodeReleased)
	_, err = a.client.Status(ctx, ulid.Make().String())
	wantCode(t, err, wire.CodeNotFound)
	if _, err := a.client.Status(ctx, "../healthz"); err == nil {
		t.Error("that is no run id")
	}
}

func TestClient_TokenReadsItsRun(t *testing.T) {
	t.Parallel()
	a := newAgent(t, rig.Options{}, cutter.Whole)
	id := a.call(t, "/openai/v1/chat/completions", asked).RunID()
	token, err := a.client.Token(t.Context(), id, wire.TokenRequest{TTL: "1h"})
	if err != nil || token.Expires.IsZero() {
		t.Fatal(token.Expires, err)
	}
	page := *a.client
	page.Credential = token.Token
	if run, err := page.Status(t.Context(), id); err != nil || run.ID != id {
		t.Errorf("%s, %v", run.ID, err)
	}
	_, err = page.Cancel(t.Context(), id)
	wantCode(t, err, wire.CodeUnauthorized)
	_, err = a.client.Token(t.Context(), id, wire.TokenRequest{TTL: "soon"})
	wantCode(t, err, wire.CodeBadRequest)
	if _, err := a.client.Token(t.Context(), "../x", wire.TokenRequest{}); err == nil {
		t.Error("that is no run id")
	}
}

func TestClient_ListTurnsPages(t *testing.T) {
	t.Parallel()
	a := newAgent(t, rig.Options{}, cutter.Whole)
	var want []string
	for i := range 5 {
		got := a.call(t, "/openai/v1/chat/completions", asked, "X-Buffer-Tag", fmt.Sprint("odd=", i%2))
		want = append([]string{got.RunID()}, want...)
	}
	list := func(f client.Filter) (ids []string) {
		for run, err := range a.client.List(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, run.ID)
		}
		return ids
	}
	if got := list(client.Filter{Page: 2}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := list(client.Filter{Tag: "odd=1", State: "completed"}); len(got) != 2 {
		t.Errorf("%d runs with the tag", len(got))
	}
	keyed := a.call(t, "/openai/v1/chat/completions", asked, "Idempotency-Key", "of its own").RunID()
	if got := list(client.Filter{Key: "of its own"}); len(got) != 1 || got[0] != keyed {
		t.Errorf("%q have the key, want %q", got, keyed)
	}
	for range a.client.List(t.Context(), client.Filter{Page: 1}) {
		break // asks for no more
	}
	for _, err := range a.client.List(t.Context(), client.Filter{State: "none"}) {
		wantCode(t, err, wire.CodeBadRequest)
	}
}

// Resume reads from every position, over cuts, in every dialect, and knows where it is.
func TestClient_ResumeFromEveryPosition(t *testing.T) {
	t.Parallel()
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var cut armed
			a := newAgent(t, rig.Options{}, cut.plan)
			a.Fake.Script("primary", s.stream())
			id := a.call(t, s.path, asked).RunID()
			for from := 0; from <= len(s.events); from += 7 {
				a.fresh()
				cut.arm(cutter.Answer(int64(500 + 211*from)))
				stream, err := a.client.Resume(t.Context(), id, int64(from))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(stream)
				stream.Close()
				if err != nil || !bytes.Equal(b, s.all()[len(s.first(from)):]) {
					t.Errorf("from %d: %d bytes, %v", from, len(b), err)
				}
				if stream.Run != id || stream.State != "completed" || stream.From != int64(from) || stream.Next != int64(len(s.events)) {
					t.Errorf("from %d: %s %s, %d to %d", from, stream.Run, stream.State, stream.From, stream.Next)
				}
				if p := stream.Position(); s.contentType == "text/event-stream" && p != int64(len(s.events)) {
					t.Errorf("from %d: at position %d, want %d", from, p, len(s.events))
				}
			}
			_, err := a.client.Resume(t.Context(), id, int64(len(s.events)+1))
			if e := wantCode(t, err, wire.CodeAhead); e.Next != int64(len(s.events)) {
				t.Errorf("%+v", e)
			}
			_, err = a.client.Resume(t.Context(), id, -1)
			wantCode(t, err, wire.CodeBadPosition)
		})
	}
}

// A run that was interrupted ends with all that is stored, and where to go on is told.
func TestClient_ResumeOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, rig.Options{}, cutter.Whole)
			ops := append([]fakellm.Op{fakellm.Head(s.contentType)}, fakellm.Play(s.events[:8], 0)...)
			a.Fake.Script("primary", append(ops, fakellm.RST()))
			a.call(t, s.path, asked)
			id := runOf(t, a)
			run, err := a.client.Status(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, from := range []int64{0, 3, run.Head} {
				stream, err := a.client.Resume(t.Context(), id, from)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(stream)
				stream.Close()
				e, ok := errors.AsType[*client.InterruptedError](err)
				if !ok || e.Run != id || e.Reason != run.Reason || e.Next > run.Head || !bytes.HasPrefix(s.all(), append(s.first(int(from)), b...)) {
					t.Errorf("from %d: %d bytes, %v", from, len(b), err)
				}
				if int64(len(s.first(int(from)))+len(b)) != run.Bytes {
					t.Errorf("from %d: %d bytes of %d", from, len(b), run.Bytes)
				}
			}
		})
	}
}
