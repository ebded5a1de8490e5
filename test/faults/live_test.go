package faults

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// disk fails one point of the log, from break to heal, with an error, or by not answering.
type disk struct {
	mu    sync.Mutex
	at    sqlite.Point
	err   error         // nil hangs
	left  int           // how often; below 0 without end
	hit   chan struct{} // closed at the first time
	times int
	held  chan struct{} // closed by heal
}

func (d *disk) breakAt(at sqlite.Point, err error, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.err, d.left, d.hit, d.held = at, err, times, make(chan struct{}), make(chan struct{})
}

func (d *disk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != "" {
		close(d.held)
	}
	d.at, d.left = "", 0
}

func (d *disk) fault(p sqlite.Point) error {
	d.mu.Lock()
	if p != d.at || d.left == 0 {
		d.mu.Unlock()
		return nil
	}
	d.left--
	if d.times++; d.hit != nil {
		close(d.hit)
		d.hit = nil
	}
	err, held := d.err, d.held
	d.mu.Unlock()
	if err == nil {
		<-held
	}
	return err
}

// patience ends a wait that would be a fault itself: less than a refusal counts by itself.
const patience = 5 * time.Second

// bench is a service whose provider has sent some events, and sends the others when it is told to.
type bench struct {
	*rig.Rig
	t      *testing.T
	c      *count
	disk   *disk
	events [][]byte
	open   chan struct{}
	before int // events that come before open
}

func newBench(t *testing.T, c *count, before int) *bench {
	b := &bench{t: t, c: c, disk: &disk{}, events: fakellm.Chat("a ", "b ", "c ", "d "), open: make(chan struct{}), before: before}
	b.Rig = rig.New(t, rig.Options{Fault: b.disk.fault})
	ops := append(fakellm.Play(b.events[:before], 0), fakellm.Gate(b.open))
	b.Fake.Script("primary", fakellm.Stream("text/event-stream", append(ops, fakellm.Play(b.events[before:], 0)...)...))
	t.Cleanup(b.disk.heal)
	return b
}

func (b *bench) bytes(from, to int) []byte { return bytes.Join(b.events[from:to], nil) }

// call makes the call and reads the events that come at once.
func (b *bench) call() *http.Response {
	b.t.Helper()
	resp := b.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", "k")
	got := make([]byte, len(b.bytes(0, b.before)))
	if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, b.bytes(0, b.before)) {
		b.t.Fatalf("%q, %v", got, err)
	}
	return resp
}

// wantCut checks that the rest of an answer is what was paid for, and then says that it is not whole.
func (b *bench) wantCut(body io.Reader, from int) {
	b.t.Helper()
	got, err := io.ReadAll(body)
	told, whole := bytes.CutPrefix(got, b.bytes(from, len(b.events)))
	if !whole {
		b.c.lost++
	}
	if err == nil || !whole || !strings.Contains(string(told), "storage") {
		b.t.Errorf("the answer went on with %q and ended with %v", got, err)
	}
}

// wantRefused checks that nothing new begins, and that the service says so.
func (b *bench) wantRefused() {
	b.t.Helper()
	a := b.Do("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", "another")
	if a.Status != 503 || !strings.Contains(string(a.Body), "storage") || a.Header.Get("Retry-After") == "" {
		b.t.Errorf("a new run: status %d, %s", a.Status, a.Body)
	}
	if a := b.Do("GET", "/readyz", ""); a.Status != 503 || !strings.Contains(string(a.Body), "storage") {
		b.t.Errorf("/readyz: status %d, %s", a.Status, a.Body)
	}
}

// wantSealed heals the disk and checks what is left of the run: its first n events, told as interrupted.
func (b *bench) wantSealed(id string, n int) {
	b.t.Helper()
	b.disk.heal()
	run := b.Await(id, buffer.Interrupted)
	if run.Reason != buffer.Storage || run.Head != int64(n) {
		b.t.Errorf("the run is %s %q at %d, want it cut at %d", run.State, run.Reason, run.Head, n)
	}
	for begun := time.Now(); b.Do("GET", "/readyz", "").Status != http.StatusOK; { // the end is seen a moment before
		if time.Since(begun) > patience {
			b.t.Fatal("not ready after the disk was healed")
		}
	}
	sends := b.Fake.Count("")
	a := b.Do("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", "k")
	told, stored := bytes.CutPrefix(a.Body, b.bytes(0, n))
	if !stored || a.Err == nil || !strings.Contains(string(told), "storage") || b.Fake.Count("") != sends {
		b.t.Errorf("its repeat: %q, %v, %d sends", a.Body, a.Err, b.Fake.Count("")-sends)
	}
	if a := b.Do("GET", "/runs/"+id+"/resume?from=9", ""); a.Status != 416 {
		b.t.Errorf("what was never stored can be resumed: status %d", a.Status)
	}
	b.c.times += b.disk.times
}

func liveFaults() []fault {
	const paid = "readers get the rest from memory and are told; interrupted, storage; 503; heals alone"
	return []fault{
		{"commit fails, not kept", paid, func(t *testing.T, c *count) { refusedMidway(t, c, io.ErrUnexpectedEOF) }},
		{"disk full", paid, func(t *testing.T, c *count) { refusedMidway(t, c, syscall.ENOSPC) }},
		{"file system read-only", paid, func(t *testing.T, c *count) { refusedMidway(t, c, syscall.EROFS) }},
		{"the first commit of an answer fails", "as above, with nothing stored; its key buys nothing again", refusedAtOnce},
		{"the last commit of an answer fails", paid, refusedAtTheEnd},
		{"commit fails, kept", "nobody notices", keptThough},
		{"commit hangs", "readers wait and get everything; 503; the provider is slowed by TCP", hangs},
		{"claim fails", "503; nothing is sent; a repeat buys once", refusedClaim},
	}
}

func refusedMidway(t *testing.T, c *count, err error) {
	b := newBench(t, c, 3)
	resp := b.call()
	defer resp.Body.Close()
	id := resp.Header.Get("X-Buffer-Run-Id")
	page := b.Open("GET", "/runs/"+id+"/events", "")
	defer page.Body.Close()
	resumed := b.Open("GET", "/runs/"+id+"/resume?from=2", "")
	defer resumed.Body.Close()
	b.disk.breakAt(sqlite.AtCommit, err, -1)
	close(b.open)
	b.wantCut(resp.Body, 3)
	b.wantRefused()

	got, err := io.ReadAll(resumed.Body)
	if err == nil || !bytes.Equal(got, b.bytes(2, len(b.events))) {
		t.Errorf("/resume: %q, %v", got, err)
	}
	told, err := io.ReadAll(page.Body)
	if text := string(told); err != nil || strings.Contains(text, "id: "+id+":4") || !strings.Contains(text, "id: "+id+":2\n") ||
		!strings.Contains(text, "[DONE]") || !strings.Contains(text, "event: interrupted\n") || !strings.HasSuffix(strings.TrimSpace(text), "id: "+id+":3") {
		t.Errorf("/events: %s, %v", told, err)
	}
	if late := b.Do("GET", "/runs/"+id+"/resume?from=3", "", "X-Buffer-Heartbeat", "off"); late.Header.Get("X-Buffer-Next") != "3" {
		t.Errorf("who comes late may resume from %q", late.Header.Get("X-Buffer-Next"))
	}
	b.wantSealed(id, 3)
}

func refusedAtOnce(t *testing.T, c *count) {
	b := newBench(t, c, 0)
	type result struct {
		resp *http.Response
		err  error
	}
	began := make(chan result)
	req := b.Request("POST", "/openai/v1/chat/completions", rig.ChatBody, "Idempotency-Key", "k")
	go func() {
		resp, err := b.Client.Do(req)
		began <- result{resp, err}
	}()
	if err := b.Fake.Await(t.Context(), func(r []fakellm.Request) bool { return len(r) == 1 }); err != nil {
		t.Fatal(err)
	}
	b.disk.breakAt(sqlite.AtCommit, syscall.ENOSPC, -1)
	close(b.open)
	r := <-began
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.resp.Body.Close()
	b.wantCut(r.resp.Body, 0)
	b.wantSealed(r.resp.Header.Get("X-Buffer-Run-Id"), 0)
}

func refusedAtTheEnd(t *testing.T, c *count) {
	b := newBench(t, c, 6) // all but the last
	resp := b.call()
	defer resp.Body.Close()
	b.disk.breakAt(sqlite.AtFinish, syscall.ENOSPC, -1)
	close(b.open)
	b.wantCut(resp.Body, 6)
	b.wantSealed(resp.Header.Get("X-Buffer-Run-Id"), 6)
}

func keptThough(t *testing.T, c *count) {
	b := newBench(t, c, 3)
	resp := b.call()
	defer resp.Body.Close()
	b.disk.breakAt(sqlite.AtCommitted, syscall.EIO, 1)
	close(b.open)
	b.wantWhole(resp)
	c.times += b.disk.times
}

// wantWhole reads an answer to its proper end, and holds the log against it.
func (b *bench) wantWhole(resp *http.Response) {
	b.t.Helper()
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, b.bytes(b.before, len(b.events))) {
		b.c.lost++
		b.t.Errorf("%q, %v", got, err)
	}
	id := resp.Header.Get("X-Buffer-Run-Id")
	b.Await(id, buffer.Completed)
	if a := b.Do("GET", "/runs/"+id+"/resume", ""); !bytes.Equal(a.Body, b.bytes(0, len(b.events))) {
		b.c.corrupted++
	}
}

func hangs(t *testing.T, c *count) {
	b := newBench(t, c, 3)
	resp := b.call()
	defer resp.Body.Close()
	b.disk.breakAt(sqlite.AtCommit, nil, 1)
	hit := b.disk.hit
	close(b.open)
	<-hit
	b.wantRefused() // after the patience that a claim has
	b.disk.heal()
	b.wantWhole(resp)
	c.times += b.disk.times
}

func refusedClaim(t *testing.T, c *count) {
	b := newBench(t, c, 3)
	close(b.open)
	b.disk.breakAt(sqlite.AtClaim, syscall.ENOSPC, -1)
	b.wantRefused()
	b.disk.heal()
	resp := b.call()
	defer resp.Body.Close()
	b.wantWhole(resp)
	if n := b.Fake.Count(""); n != 1 {
		t.Errorf("%d sends", n)
	}
	c.times += b.disk.times
}
