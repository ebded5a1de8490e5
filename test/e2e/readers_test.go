package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// paced starts a chat of n texts that come one after the other. The first half of its events is there
// when paced returns; the rest is behind a gate.
func paced(t *testing.T, g *rig.Rig, n int, every time.Duration) (id string, open func(), events [][]byte) {
	t.Helper()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("word %d ", i)
	}
	events = fakellm.Chat(texts...)
	gate := make(chan struct{})
	ops := append(fakellm.Play(events[:n/2], 0), fakellm.Gate(gate))
	ops = append(ops, fakellm.Play(events[n/2:], every)...)
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", ops...))
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	resp.Body.Close() // the caller leaves at once; the run goes on
	id = resp.Header.Get("X-Buffer-Run-Id")
	eventually(t, func() bool {
		return g.Do("GET", fmt.Sprintf("/runs/%s/resume?follow=0&from=%d", id, n/2), "").Status == 200
	})
	return id, sync.OnceFunc(func() { close(gate) }), events
}

// eventually polls what many goroutines bring about.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

// attached waits until n tails of the run are open.
func attached(t *testing.T, g *rig.Rig, id string, n int) {
	t.Helper()
	key, err := ulid.ParseStrict(id)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return g.Runs.Readers(key) == n })
}

// wantQuiet waits until no more goroutines are left than there were before, give or take the few of
// connections that are kept for later.
func wantQuiet(t *testing.T, g *rig.Rig, before int) {
	t.Helper()
	eventually(t, func() bool {
		g.Client.CloseIdleConnections()
		return runtime.NumGoroutine() <= before+4
	})
}

// read reads an answer to its end.
func read(resp *http.Response) rig.Answer {
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return rig.Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Err: err}
}

func TestReaders_AThousandTailsOfOneLiveRun(t *testing.T) {
	const tails = 1000
	g := rig.New(t, rig.Options{Plain: true})
	id, open, events := paced(t, g, 40, time.Millisecond)
	defer open()
	attached(t, g, id, 0)
	before := runtime.NumGoroutine()
	var reading sync.WaitGroup
	whole := bytes.Join(events, nil)
	for range tails {
		reading.Go(func() {
			resp, err := g.Client.Do(g.Request("GET", "/runs/"+id+"/resume?from=0", ""))
			if err != nil {
				t.Error(err)
				return
			}
			if a := read(resp); a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, whole) {
				t.Errorf("%d, %d bytes of %d, %v", a.Status, len(a.Body), len(whole), a.Err)
			}
		})
	}
	attached(t, g, id, tails)
	open()
	reading.Wait()
	g.Await(id, buffer.Completed)
	attached(t, g, id, 0)
	wantQuiet(t, g, before)
}

func TestReaders_ComeAtAnyMomentFromAnywhere(t *testing.T) {
	const tails = 500
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	g := rig.New(t, rig.Options{Plain: true})
	id, open, events := paced(t, g, 120, time.Millisecond)
	defer open()
	before := runtime.NumGoroutine()
	var reading sync.WaitGroup
	for i := range tails {
		if i == tails/4 {
			open() // the rest come while chunks do
		}
		from, inBytes := random.IntN(60), random.IntN(2) == 0
		skip := bytes.Join(events[:from], nil)
		want, query := bytes.Join(events[from:], nil), fmt.Sprintf("from=%d", from)
		if inBytes {
			cut := random.IntN(len(events[from]))
			query, want = fmt.Sprintf("from_byte=%d", len(skip)+cut), want[cut:]
		}
		for range random.IntN(50) {
			runtime.Gosched()
		}
		reading.Go(func() {
			resp, err := g.Client.Do(g.Request("GET", "/runs/"+id+"/resume?"+query, ""))
			if err != nil {
				t.Error(err)
				return
			}
			if a := read(resp); a.Status != 200 || a.Err != nil || !bytes.Equal(a.Body, want) {
				t.Errorf("%s: %d, %d bytes of %d, %v", query, a.Status, len(a.Body), len(want), a.Err)
			}
		})
	}
	reading.Wait()
	g.Await(id, buffer.Completed)
	attached(t, g, id, 0)
	wantQuiet(t, g, before)
}

// huge is a chat that no socket's memory can hold, so that a reader who does not read is noticed.
func huge() [][]byte {
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = strings.Repeat("x", 128<<10)
	}
	return fakellm.Chat(texts...)
}

// silent opens a tail and reads nothing of it.
func silent(t *testing.T, g *rig.Rig, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: spool\r\nAuthorization: Bearer k\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestReaders_WhoNeverReadAreCutAndDisturbNobody(t *testing.T) {
	const deaf = 3
	g := rig.New(t, rig.Options{Plain: true, Limits: api.Limits{Write: 2 * time.Second}})
	events := huge()
	gate := make(chan struct{})
	ops := append(fakellm.Play(events[:2], 0), fakellm.Gate(gate))
	g.Fake.Script("primary", fakellm.Stream("text/event-stream", append(ops, fakellm.Play(events[2:], 0)...)...))
	resp := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody)
	resp.Body.Close()
	id := resp.Header.Get("X-Buffer-Run-Id")
	attached(t, g, id, 0)
	before := runtime.NumGoroutine()

	var conns []net.Conn
	for range deaf {
		conns = append(conns, silent(t, g, "/runs/"+id+"/resume"))
	}
	good := g.Open("GET", "/runs/"+id+"/resume", "")
	attached(t, g, id, deaf+1)
	close(gate)
	whole := bytes.Join(events, nil)
	if a := read(good); a.Err != nil || !bytes.Equal(a.Body, whole) {
		t.Errorf("the reader beside them got %d of %d bytes, %v", len(a.Body), len(whole), a.Err)
	}
	g.Await(id, buffer.Completed)
	attached(t, g, id, 0) // though their connections are still open on their side
	wantQuiet(t, g, before)
	for _, c := range conns {
		got, err := io.Copy(io.Discard, c)
		if got >= int64(len(whole)) {
			t.Errorf("a reader that did not read has %d bytes, %v", got, err)
		}
	}
	if a := g.Do("GET", "/runs/"+id+"/resume", ""); a.Err != nil || !bytes.Equal(a.Body, whole) {
		t.Errorf("a reader that comes after them got %d bytes, %v", len(a.Body), a.Err)
	}
}

func TestReaders_WhoVanishAreForgotten(t *testing.T) {
	const tails = 100
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	g := rig.New(t, rig.Options{Plain: true})
	id, open, events := paced(t, g, 60, time.Millisecond)
	defer open()
	attached(t, g, id, 0)
	before := runtime.NumGoroutine()
	whole := bytes.Join(events, nil)
	stays := g.Open("GET", "/runs/"+id+"/resume", "")
	var leaving sync.WaitGroup
	for i := range tails {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		conn := net.Conn(nil)
		if i%2 == 0 { // half of them are cut without a word
			conn = silent(t, g, "/runs/"+id+"/resume")
			if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
		}
		want := 1 + random.IntN(500)
		leaving.Go(func() {
			if conn != nil {
				if _, err := io.CopyN(io.Discard, conn, int64(want)); err != nil {
					t.Error(err)
				}
				conn.Close()
				return
			}
			resp, err := g.Client.Do(g.Request("GET", "/runs/"+id+"/resume", "").WithContext(ctx))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if _, err := io.CopyN(io.Discard, resp.Body, int64(want)); err != nil {
				t.Error(err)
			}
			leave()
		})
	}
	leaving.Wait()
	attached(t, g, id, 1)
	open()
	if a := read(stays); a.Err != nil || !bytes.Equal(a.Body, whole) {
		t.Errorf("the reader that stays got %d of %d bytes, %v", len(a.Body), len(whole), a.Err)
	}
	g.Await(id, buffer.Completed)
	wantQuiet(t, g, before)
}

func TestReaders_CancelAbortsEveryTail(t *testing.T) {
	const tails = 200
	g := rig.New(t, rig.Options{Plain: true})
	id, open, events := paced(t, g, 40, 0)
	defer open()
	attached(t, g, id, 0)
	before := runtime.NumGoroutine()
	answers := make(chan rig.Answer)
	for i := range tails {
		go func() {
			resp, err := g.Client.Do(g.Request("GET", fmt.Sprintf("/runs/%s/resume?from=%d", id, i%20), ""))
			if err != nil {
				answers <- rig.Answer{}
				return
			}
			answers <- read(resp)
		}()
	}
	attached(t, g, id, tails)
	if a := g.Do("POST", "/runs/"+id+"/cancel", ""); a.Status != 200 || !bytes.Contains(a.Body, []byte(`"state":"cancelled"`)) {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	}
	run := g.Await(id, buffer.Cancelled)
	whole := bytes.Join(events[:run.Head], nil)
	for range tails {
		if a := <-answers; a.Status != 200 || !errors.Is(a.Err, io.ErrUnexpectedEOF) || !bytes.HasSuffix(whole, a.Body) {
			t.Errorf("a tail got %d, %d bytes of %d, %v; want its end to be an abort", a.Status, len(a.Body), len(whole), a.Err)
		}
	}
	attached(t, g, id, 0)
	wantQuiet(t, g, before)
}

// stuck opens a tail of a run that is large and has ended, takes its first byte, and stops there.
func stuck(t *testing.T, g *rig.Rig, id string) *http.Response {
	t.Helper()
	resp := g.Open("GET", "/runs/"+id+"/resume", "")
	t.Cleanup(func() { resp.Body.Close() })
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return resp
}

// What is given up under readers stays theirs to the end, whoever gave it up; nobody new gets it.
func TestReaders_ReleaseUnderOpenTails(t *testing.T) {
	const tails = 3
	whole := bytes.Join(huge(), nil)
	for _, row := range []struct {
		name, ttl string
		release   func(t *testing.T, g *rig.Rig, id string)
	}{
		{"ack", "1h", func(t *testing.T, g *rig.Rig, id string) {
			if a := g.Do("POST", "/runs/"+id+"/ack", ""); a.Status != 200 {
				t.Fatalf("ack: %d %s", a.Status, a.Body)
			}
		}},
		{"expiry", "1ms", func(t *testing.T, g *rig.Rig, id string) {}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := rig.New(t, rig.Options{Plain: true, Runs: buffer.Config{Sweep: 50 * time.Millisecond}})
			gate := make(chan struct{})
			events := huge()
			ops := append(fakellm.Play(events[:len(events)-1], 0), fakellm.Gate(gate))
			g.Fake.Script("primary", fakellm.Stream("text/event-stream", append(ops, fakellm.Bytes(events[len(events)-1]))...))
			caller := g.Open("POST", "/openai/v1/chat/completions", rig.ChatBody, "X-Buffer-TTL", row.ttl)
			caller.Body.Close()
			id := caller.Header.Get("X-Buffer-Run-Id")
			var open []*http.Response
			for range tails {
				open = append(open, stuck(t, g, id))
			}
			attached(t, g, id, tails)
			close(gate)
			g.Await(id, buffer.Completed)
			row.release(t, g, id)
			for range 20 { // sweeps go by
				g.Do("GET", "/runs/"+id, "")
			}
			for i, resp := range open {
				if a := read(resp); a.Err != nil || !bytes.Equal(a.Body, whole[1:]) {
					t.Errorf("tail %d got %d of %d bytes, %v", i, len(a.Body), len(whole)-1, a.Err)
				}
			}
			eventually(t, func() bool { // a tail that is opened to look would keep the chunks
				return bytes.Contains(g.Do("GET", "/runs/"+id, "").Body, []byte(`"state":"released"`))
			})
			if a := g.Do("GET", "/runs/"+id+"/resume", ""); a.Status != 410 || !bytes.Contains(a.Body, []byte(`"released"`)) {
				t.Errorf("a new reader: %d %s, want 410", a.Status, a.Body)
			}
		})
	}
}

// Thirty readers come for one event of 20 MB in the file and never read it. However they ask, together they hold what
// limits.pages says; who comes after them gets all of it once they have left.
func TestReaders_WhoNeverReadShareTheRoomForLargeEvents(t *testing.T) {
	const size, deaf = 20 << 20, 30
	const most = 14 * size // two have it; four reads of it may be under way, which take it twice; and as much as two again, twice
	dir := t.TempDir()
	g := rig.New(t, rig.Options{Dir: dir, Plain: true})
	body := `{"object":"chat.completion","filler":"` + strings.Repeat("x", size) + `"}`
	g.Fake.Script("primary", []fakellm.Op{fakellm.JSON(http.StatusOK, body)})
	id := g.Do("POST", "/openai/v1/chat/completions", `{"model":"m"}`).Header.Get("X-Buffer-Run-Id")
	g.Await(id, buffer.Completed)
	for name, path := range map[string]string{"resume": "/runs/" + id + "/resume", "events": "/runs/" + id + "/events"} {
		t.Run(name, func(t *testing.T) {
			fresh := rig.New(t, rig.Options{Dir: dir, Plain: true, Join: true, Pages: api.NewPages(2 * size)}) // it has nothing in memory
			before := heap()
			var conns []net.Conn
			for range deaf {
				conns = append(conns, silent(t, fresh, path))
			}
			attached(t, fresh, id, deaf)
			var held int64
			for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
				held = max(held, heap()-before)
			}
			if held < size || held > most {
				t.Errorf("they hold %d MiB", held>>20)
			}
			for _, conn := range conns {
				conn.Close()
			}
			if a := read(fresh.Open("GET", path, "")); a.Err != nil || !bytes.Contains(a.Body, []byte(body)) {
				t.Errorf("who reads gets %d bytes, %v", len(a.Body), a.Err)
			}
		})
	}
}

// heap is what lives, after a moment in which what is dead was collected.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
