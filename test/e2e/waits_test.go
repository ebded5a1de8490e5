package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// What is stored is delivered without a word from the provider, which may be silent for ever.
func TestWait_StoredEventsDoNotWaitForTheProvider(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			at := s.preamble + 3
			id, open := s.begin(t, g, at, "Idempotency-Key", s.name)
			defer open()
			stored := at - s.behind
			for _, resp := range []*http.Response{
				g.Open("GET", "/runs/"+id+"/resume", ""),
				g.Open("GET", "/resume?run="+id, ""),
				g.Open("POST", s.path, s.body, "Idempotency-Key", s.name),
			} {
				take(t, resp, len(s.first(stored)))
				resp.Body.Close()
			}
			a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d&follow=0", id, stored-1), "")
			wantWhole(t, "the last that is stored", a, s.events[stored-1])
		})
	}
}

// A call that was accepted is there, by its id and its key, before the provider has said a word: who
// comes for it waits as its caller does.
func TestWait_CallWithoutAnAnswerYetIsThere(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{Limits: api.Limits{Hold: 20 * time.Millisecond}})
	for i, s := range speeches() {
		ok := t.Run(s.name, func(t *testing.T) {
			id := fmt.Sprintf("01JZZZZZZZ00000000000001%02d", i)
			gate := make(chan struct{})
			open := sync.OnceFunc(func() { close(gate) })
			defer open()
			g.Fake.Script("primary", append([]fakellm.Op{fakellm.Gate(gate)}, fakellm.Stream(s.contentType, fakellm.Play(s.events, 0)...)...))
			called := make(chan rig.Answer, 1)
			go func() {
				called <- s.say(g, "X-Buffer-Run-Id", id, "X-Buffer-Heartbeat", "off", "X-Buffer-Operation", "early")
			}()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := g.Fake.Await(ctx, func(r []fakellm.Request) bool { return len(r) == i+1 }); err != nil {
				t.Fatal(err)
			}
			if a := g.Do("GET", "/runs/"+id, ""); a.Status != http.StatusOK {
				t.Errorf("its status: %d %s", a.Status, a.Body)
			}
			if a := g.Do("GET", "/runs/"+id+"/resume?wait=1ms", ""); a.Status != http.StatusNoContent {
				t.Errorf("a long poll: status %d, want 204", a.Status)
			}
			// Their headers come when the hold is over, with the gate still shut.
			byID := begun(t, g, g.Request("GET", "/runs/"+id+"/resume", ""))
			byKey := begun(t, g, g.Request("GET", "/resume?key="+id, ""))
			again := begun(t, g, g.Request("POST", s.path, s.body, "X-Buffer-Run-Id", id, "X-Buffer-Heartbeat", "off"))
			open()
			wantWhole(t, "by its id", finish(byID), s.all())
			wantWhole(t, "by its key", finish(byKey), s.all())
			wantWhole(t, "the call again", finish(again), s.all())
			wantWhole(t, "its caller", <-called, s.all())
		})
		if !ok {
			return // the other dialects would be waited for in vain as long
		}
	}
}

// begun makes a request whose headers must come before its answer does.
func begun(t *testing.T, g *rig.Rig, req *http.Request) *http.Response {
	t.Helper()
	ctx, leave := context.WithCancel(req.Context())
	late := time.AfterFunc(patience, leave)
	resp, err := g.Client.Do(req.WithContext(ctx))
	late.Stop()
	t.Cleanup(leave)
	if err != nil {
		t.Fatalf("%s %s has not begun: %v", req.Method, req.URL.Path, err)
	}
	return resp
}

// hooked is a store that does something before one of a reader's steps.
type hooked struct {
	buffer.Store
	mu     sync.Mutex
	step   string // before which
	nth    int    // … of them; 0 is none
	action func()
}

func (h *hooked) hook(step string, nth int, action func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step, h.nth, h.action = step, nth, action
}

func (h *hooked) pass(step string) {
	h.mu.Lock()
	var action func()
	if h.step == step {
		if h.nth--; h.nth == 0 {
			action = h.action
		}
	}
	h.mu.Unlock()
	if action != nil {
		action()
	}
}

// Watch implements buffer.Store.
func (h *hooked) Watch(id ulid.ULID) (<-chan struct{}, func()) {
	h.pass("before watch")
	changed, stop := h.Store.Watch(id)
	h.pass("after watch")
	return changed, stop
}

// Read implements buffer.Store.
func (h *hooked) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	page, err := h.Store.Read(ctx, id, from, max)
	h.pass("after read")
	return page, err
}

// The end of a run is a row, not a message: a reader at the head sees it wherever between its steps
// the run ends, without another bell.
func TestWait_EndIsSeenWhereverBetweenTwoStepsItFalls(t *testing.T) {
	t.Parallel()
	g := rig.New(t, rig.Options{})
	store := &hooked{Store: g.Store}
	g.Server.Store = store
	s := spoken(t, "anthropic")
	const at = 5
	for _, step := range []string{"before watch", "after watch", "after read"} {
		for nth := 1; nth <= 4; nth++ {
			if nth > 1 && step != "after read" { // placing the tail reads twice and a look once, without a watch
				continue
			}
			t.Run(fmt.Sprint(step, " ", nth), func(t *testing.T) {
				id, open := s.begin(t, g, at)
				waitFor(t, func() bool { return g.Runs.Readers(mustULID(t, id)) == 0 }) // its caller takes no step any more
				passed := make(chan struct{})
				store.hook(step, nth, func() {
					open()
					g.Await(id, buffer.Completed)
					close(passed)
				})
				a := finish(g.Open("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, at), ""))
				select {
				case <-passed:
				default:
					open()
					t.Fatal("the reader took no such step")
				}
				wantWhole(t, "a tail", a, s.rest(at))
			})
		}
	}
}
