package faults

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// Ten providers would send 10 MiB each while the log hangs. They are slowed down by TCP: memory stays
// small, /readyz says 503, and when the log answers again, all of it is there.
func TestOverload_SlowsTheProvidersDown(t *testing.T) {
	const calls, events, size = 10, 160, 64 << 10
	const most = 64 << 20 // of 100 MiB: what one batch, the inboxes and the sockets hold, and as much again
	d := &disk{}
	g := rig.New(t, rig.Options{Plain: true, Fault: d.fault})
	t.Cleanup(d.heal)
	open := make(chan struct{})
	event := string(fakellm.Chat(strings.Repeat("x", size))[1])
	g.Fake.Script("primary", fakellm.Stream("text/event-stream",
		fakellm.Data(event), fakellm.Gate(open), fakellm.Repeat(events, 0, event), fakellm.Data("data: [DONE]\n\n")))

	var answers []*http.Response
	for range calls {
		resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
		defer resp.Body.Close()
		answers = append(answers, resp)
	}
	before := heap()
	d.breakAt(sqlite.AtCommit, nil, 1)
	close(open)
	for g.Do("GET", "/readyz", "").Status != http.StatusServiceUnavailable {
		runtime.Gosched()
	}
	if grown := heap() - before; grown > most {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	d.heal()
	var readers sync.WaitGroup
	for _, resp := range answers {
		readers.Go(func() {
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < events*size {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	readers.Wait()
	for _, resp := range answers {
		g.Await(resp.Header.Get("X-Buffer-Run-Id"), buffer.Completed)
	}
	if a := g.Do("GET", "/readyz", ""); a.Status != http.StatusOK {
		t.Errorf("/readyz: status %d when all was done", a.Status)
	}
}

// heap is what lives, after a moment in which what is dead was collected.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
