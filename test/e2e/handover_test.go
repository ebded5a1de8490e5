package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/rig"
)

// When another process takes over, who comes back by itself is sent there, and gets what comes; whose SDK
// would take that for a failure stays to the end.
func TestHandOver_EachReaderGetsTheWhole(t *testing.T) {
	t.Parallel()
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	old := rig.New(t, rig.Options{Leaving: leaving})
	s := spoken(t, "chat")
	const at = 4
	gate := make(chan struct{})
	s.play(old, at, gate)
	caller := old.Open("POST", s.path, s.body, "Idempotency-Key", "turn")
	defer caller.Body.Close()
	id := caller.Header.Get("X-Buffer-Run-Id")
	take(t, caller, len(s.first(at)))
	bytesOf := old.Open("GET", "/runs/"+id+"/resume", "")
	defer bytesOf.Body.Close()
	take(t, bytesOf, len(s.first(at)))
	page := old.Open("GET", "/runs/"+id+"/events", "")
	defer page.Body.Close()
	take(t, page, len(s.first(at))) // and some of its ids
	polled := make(chan rig.Answer)
	go func() { polled <- old.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d&wait=5m", id, at), "") }()

	fresh := rig.New(t, rig.Options{Dir: old.Dir, Join: true})
	leave()
	if _, err := io.ReadAll(bytesOf.Body); err == nil {
		t.Error("a tail that is not whole ends as if it were")
	}
	told, err := io.ReadAll(page.Body)
	if err != nil || !regexp.MustCompile(`\nretry: \d{1,3}\n\n$`).Match(told) {
		t.Errorf("a page is told %q, %v", told, err)
	}
	if a := <-polled; a.Status != http.StatusNoContent || a.Header.Get("X-Buffer-Next") != fmt.Sprint(at) {
		t.Errorf("a poll: %d, next %s", a.Status, a.Header.Get("X-Buffer-Next"))
	}
	again := old.Open("GET", "/healthz", "")
	again.Body.Close()
	if !again.Close {
		t.Error("a client may come once more on the same connection")
	}

	rest := fresh.Open("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, at), "")
	defer rest.Body.Close()
	attached := fresh.Open("POST", s.path, s.body, "Idempotency-Key", "turn")
	defer attached.Body.Close()
	close(gate)
	for _, row := range []struct {
		name string
		body io.Reader
		want []byte
	}{
		{"the caller", caller.Body, s.rest(at)},
		{"who came back", rest.Body, s.rest(at)},
		{"who called again", attached.Body, s.all()},
	} {
		if b, err := io.ReadAll(row.body); err != nil || !bytes.Equal(b, row.want) {
			t.Errorf("%s got %q, %v", row.name, b, err)
		}
	}
	if n := old.Fake.Count("") + fresh.Fake.Count(""); n != 1 {
		t.Errorf("bought %d times", n)
	}
}

// A run whose readers come elsewhere by now is not cancelled for want of them; who cancels it elsewhere is heard,
// though its provider is silent.
func TestHandOver_ARunIsCancelledByWordAlone(t *testing.T) {
	t.Parallel()
	old := rig.New(t, rig.Options{})
	s := spoken(t, "chat")
	gate := make(chan struct{})
	defer close(gate)
	s.play(old, 3, gate)
	caller := old.Open("POST", s.path, s.body, "X-Buffer-On-Disconnect", "cancel")
	id := caller.Header.Get("X-Buffer-Run-Id")
	take(t, caller, len(s.first(3)))
	old.Runs.HandOver()
	caller.Body.Close()
	reader := old.Open("GET", "/runs/"+id+"/resume", "") // whose end would be the last one's
	take(t, reader, len(s.first(3)))
	reader.Body.Close()

	fresh := rig.New(t, rig.Options{Dir: old.Dir, Join: true})
	if status := fresh.Do("GET", "/runs/"+id, ""); !strings.Contains(string(status.Body), `"state":"streaming"`) {
		t.Fatalf("its status: %s", status.Body)
	}
	if a := fresh.Do("POST", "/runs/"+id+"/cancel", ""); a.Status != http.StatusOK {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	}
	old.Await(id, buffer.Cancelled)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	old.Runs.Drain(ctx) // it ends by itself
	if ctx.Err() != nil {
		t.Error("the drain has not heard of it")
	}
}
