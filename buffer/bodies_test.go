package buffer_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
)

// limitBodies has the requests of all runs share that many bytes.
func (r *rig) limitBodies(limit int64) {
	r.runs.Configure(r.client, buffer.Config{MaxBodies: limit})
}

// large is a call whose body has that many bytes.
func (r *rig) large(size int) buffer.Call {
	c := r.call()
	c.Send.Body = []byte(chatBody + strings.Repeat(" ", size-len(chatBody)))
	return c
}

// A request holds its room until its run's first content: before it another one is refused, and nothing
// is bought or stored of that.
func TestBodies_AreBoundedUntilTheFirstContent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, row := range []struct {
			name   string
			answer []fakellm.Op
			free   bool
		}{
			{"no answer yet", []fakellm.Op{hang}, false},
			{"a head", answer(hang), false},
			{"no content yet", answer(fakellm.Bytes(role), hang), false},
			{"content", answer(fakellm.Bytes(role), fakellm.Bytes(token), hang), true},
		} {
			r.begin(row.name)
			r.limitBodies(1000)
			r.fake.Script("primary", row.answer, whole("a "))
			first := r.start(r.large(600))
			synctest.Wait()
			second := r.large(600)
			second.Run.Key = row.name
			_, _, err := r.runs.Start(r.Context(), second)
			e, isBusy := errors.AsType[*buffer.BusyError](err)
			if row.free != (err == nil) || !row.free && (!isBusy || e.After <= 0 || !strings.Contains(e.What, "limits.bodies")) {
				r.Errorf("the second call: %v", err)
			}
			if !row.free {
				for run, err := range r.store.List(r.Context(), buffer.Filter{Caller: "agent", Key: row.name}) {
					r.Errorf("the refused call has run %s, %v", run.ID, err)
				}
				r.start(r.large(400)) // what fits is taken
			}
			if _, err := r.runs.Cancel(r.Context(), first); err != nil {
				r.Fatal(err)
			}
			synctest.Wait()
			r.fake.Script("primary", whole("a "))
			r.do(r.large(1000)) // all room is there again
		}
	})
}

// A repeat of a key gets its run, however full it is: it buys nothing.
func TestBodies_RepeatsAreServed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.limitBodies(1000)
		r.fake.Script("primary", []fakellm.Op{hang})
		call := r.large(600)
		call.Run.Key = "k"
		id := r.start(call)
		again := r.large(600)
		again.Run.Key = "k"
		run, existed, err := r.runs.Start(r.Context(), again)
		if err != nil || !existed || run.ID != id {
			r.Errorf("the repeat: run %s, existed %v, %v", run.ID, existed, err)
		}
		synctest.Wait()
		if n := len(r.sends()); n != 1 {
			r.Errorf("the provider got %d requests, want 1", n)
		}
	})
}

// What is not counted any more is not in memory either, while the answer goes on.
func TestBodies_AreGivenUp(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", answer(fakellm.Bytes(role), fakellm.Bytes(token), hang))
		body := r.startLarge()
		synctest.Wait()
		runtime.GC()
		if body.Value() != nil {
			t.Error("the request is still in memory")
		}
	})
}

// startLarge is a frame of its own, which holds the body no longer than the call.
func (r *rig) startLarge() weak.Pointer[byte] {
	c := r.large(1 << 20)
	body := weak.Make(&c.Send.Body[0])
	id := r.start(c)
	r.until(id, func(run buffer.Run) bool { return run.Head > 0 })
	return body
}
