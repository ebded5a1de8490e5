package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/cutter"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

const randomCuts = 200

// Wherever connections are cut, in requests, in heads or in bodies, every answer is whole and bought
// once, in every dialect.
func TestTransport_RandomCutsLoseNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := newAgent(t, rig.Options{}, func(int) cutter.Cut { return cutter.Anywhere(random, 6000) })
	calls := 0
	for a.cutter.Cuts() < randomCuts {
		for _, s := range speeches() {
			a.Fake.Script("primary", fakellm.Stream(s.contentType, fakellm.Play(s.events, time.Millisecond/10)...))
			calls++
			got := a.call(t, s.path, asked)
			wantWhole(t, got, s.all())
			if t.Failed() {
				t.Fatalf("%s, after %d cuts", s.name, a.cutter.Cuts())
			}
		}
	}
	if n := a.Fake.Count("primary"); n != calls {
		t.Errorf("bought %d times for %d calls", n, calls)
	}
	t.Logf("%d cuts of %d answers", a.cutter.Cuts(), calls)
}

// A connection is cut at any byte of its answer, head and all, from the first to the last.
func TestStream_AnyOffset(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := speech{events: fakellm.Chat("one ")}
	var cut armed
	a := newAgent(t, rig.Options{}, cut.plan)
	a.Fake.Script("primary", fakellm.Stream("text/event-stream", fakellm.Play(s.events, 0)...))
	id := a.call(t, "/openai/v1/chat/completions", asked).RunID()
	at := int64(0)
	for ended := false; !ended; at += 1 + random.Int64N(15) {
		from, cuts := random.IntN(3), a.cutter.Cuts()
		a.fresh()
		cut.arm(cutter.Answer(at).Somehow(random))
		stream, err := a.client.Resume(t.Context(), id, int64(from))
		if err != nil {
			t.Fatalf("cut at byte %d: %v", at, err)
		}
		b, err := io.ReadAll(stream)
		stream.Close()
		if err != nil || !bytes.Equal(b, s.all()[len(s.first(from)):]) {
			t.Fatalf("cut at byte %d: %d bytes from %d on, ended with %v", at, len(b), from, err)
		}
		ended = from == 0 && a.cutter.Cuts() == cuts // beyond the last byte
	}
	if int(at) < len(s.all()) {
		t.Errorf("cut at %d bytes only", at)
	}
}

// An answer that is no stream is one chunk: it too is repaired by bytes, and so is a refusal.
func TestTransport_AnswersWithoutAStream(t *testing.T) {
	t.Parallel()
	var cut armed
	a := newAgent(t, rig.Options{}, cut.plan)
	body := `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 800) + `"},"finish_reason":"stop"}]}`
	refusal := `{"error":{"message":"` + strings.Repeat("no ", 800) + `","type":"invalid_request_error","code":null}}`
	for _, tt := range []struct {
		name   string
		status int
		body   string
	}{{"answer", 200, body}, {"refusal", 400, refusal}} {
		for _, at := range []int64{0, 1, 50, 400, 1000, 2000} {
			t.Run(fmt.Sprint(tt.name, " cut at ", at), func(t *testing.T) {
				a.fresh()
				cut.arm(cutter.Answer(at))
				bought := a.Fake.Count("primary")
				a.Fake.Script("primary", []fakellm.Op{fakellm.JSON(tt.status, tt.body)})
				got := a.call(t, "/openai/v1/chat/completions", `{"model":"m"}`)
				if n := a.Fake.Count("primary") - bought; got.Status != tt.status || string(got.Body) != tt.body || got.Err != nil || n != 1 {
					t.Errorf("status %d, %d bytes, %v, bought %d times", got.Status, len(got.Body), got.Err, n)
				}
			})
		}
	}
}

// A run that ends short ends the answer with its id, the reason and the position, after all that is
// stored, however the connection was cut on the way.
func TestTransport_InterruptedIsNoCut(t *testing.T) {
	t.Parallel()
	for _, s := range speeches() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var cut armed
			a := newAgent(t, rig.Options{}, cut.plan)
			ops := append([]fakellm.Op{fakellm.Head(s.contentType)}, fakellm.Play(s.events[:8], 0)...)
			a.Fake.Script("primary", append(ops, fakellm.RST()))
			end := int64(len(s.first(8))) + 600 // about where the error event lies
			for i, at := range []int64{-1, 0, 300, 1500, end, end + 60, end + 120, end + 180} {
				a.fresh()
				cut.arm(cutter.Answer(at))
				model := fmt.Sprint("m", i) // a circuit of its own
				path := strings.ReplaceAll(s.path, "/m:", "/"+model+":")
				got := a.call(t, strings.ReplaceAll(path, "/m/", "/"+model+"/"), strings.ReplaceAll(asked, `"m"`, strconv.Quote(model)))
				checkInterrupted(t, a, at, got)
			}
			if n := a.Fake.Count("primary"); n != 8 {
				t.Errorf("8 calls were bought %d times", n)
			}
		})
	}
}

func checkInterrupted(t *testing.T, a *agent, at int64, got rig.Answer) {
	t.Helper()
	run := a.Await(runOf(t, a), buffer.Interrupted)
	e, ok := errors.AsType[*client.InterruptedError](got.Err)
	if !ok || e.Run != run.ID.String() || e.Reason != string(run.Reason) || e.Next != run.Head || e.State != "interrupted" {
		t.Fatalf("cut at %d, ended with %v (%T); the run: %s, head %d", at, got.Err, got.Err, run.Reason, run.Head)
	}
	stored := a.Do("GET", "/runs/"+e.Run+"/resume", "")
	if !bytes.HasPrefix(got.Body, stored.Body) || int64(len(stored.Body)) != run.Bytes {
		t.Errorf("cut at %d: %d bytes read, %d stored", at, len(got.Body), run.Bytes)
	}
}

// An error that the provider told in its stream is a clean end, as it is without a cut.
func TestTransport_ProvidersErrorIsTheEnd(t *testing.T) {
	t.Parallel()
	var cut armed
	a := newAgent(t, rig.Options{}, cut.plan)
	s := speeches()[0]
	event := []byte("data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"code\":null}}\n\n")
	s.events = append(s.events[:6:6], event)
	a.Fake.Script("primary", s.stream())
	for i, at := range []int64{-1, 800, 1400} {
		a.fresh()
		cut.arm(cutter.Answer(at))
		wantWhole(t, a.call(t, s.path, strings.ReplaceAll(asked, `"m"`, fmt.Sprintf(`"m%d"`, i))), s.all())
	}
}

// A run that fails after its stream has begun, without content, is not mended with the refusal that
// is stored for it.
func TestTransport_FailureInBandIsNotSpliced(t *testing.T) {
	t.Parallel()
	var cut armed
	a := newAgent(t, rig.Options{Limits: hold}, cut.plan)
	a.Fake.Script("primary", []fakellm.Op{fakellm.Sleep(50 * time.Millisecond), fakellm.JSON(400, `{"error":{"message":"`+strings.Repeat("no ", 900)+`"}}`)})
	for _, at := range []int64{-1, 640, 700, 760} {
		a.fresh()
		cut.arm(cutter.Answer(at))
		got := a.call(t, "/openai/v1/chat/completions", asked)
		e, ok := errors.AsType[*client.InterruptedError](got.Err)
		if !ok || e.State != "failed" || e.Run != runOf(t, a) || strings.Contains(string(got.Body), "no no") {
			t.Errorf("cut at %d: status %d, %q, %v", at, got.Status, got.Body, got.Err)
		}
	}
}

// Where nothing mends the connection, the error tells the run and where to go on.
func TestTransport_GivesUpWithRunAndPosition(t *testing.T) {
	t.Parallel()
	s := speeches()[0]
	gate := make(chan struct{})
	a := newAgent(t, rig.Options{}, func(n int) cutter.Cut {
		if n == 0 {
			return cutter.Whole(n)
		}
		return cutter.Answer(0)
	})
	a.transport.Patience.Tries = 5
	a.Fake.Script("primary", s.gated(7, gate))
	resp, err := a.http.Do(a.request(t.Context(), s.path, asked))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, len(s.first(7))-3)); err != nil {
		t.Fatal(err)
	}
	a.cutter.Drop()
	rest, err := io.ReadAll(resp.Body)
	e, ok := errors.AsType[*client.GiveUpError](err)
	read := int64(len(s.first(7)) - 3 + len(rest))
	if !ok || e.Run != resp.Header.Get(wire.HeaderRunID) || e.Bytes != read || e.Tries != 5 || e.Err == nil {
		t.Fatalf("%v after %d bytes", err, read)
	}
	if want := map[bool]int64{true: 6, false: 7}[len(rest) == 0]; e.Next != want {
		t.Errorf("position %d, want %d", e.Next, want)
	}
	if _, again := resp.Body.Read(make([]byte, 1)); again != err {
		t.Errorf("then %v", again)
	}
	close(gate)
	a.Await(e.Run, buffer.Completed)
	direct := &client.Client{BaseURL: a.URL, Credential: "k"}
	stream, err := direct.Resume(t.Context(), e.Run, e.Next)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if b, err := io.ReadAll(stream); err != nil || string(b) != string(s.all()[len(s.first(int(e.Next))):]) {
		t.Errorf("from there on: %d bytes, %v", len(b), err)
	}
}

// A call that never gets through names the run that it would have been.
func TestTransport_GivesUpBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	a := newAgent(t, rig.Options{}, func(int) cutter.Cut { return cutter.Request(20) })
	a.transport.Patience.Tries = 3
	got := a.call(t, "/openai/v1/chat/completions", asked)
	e, ok := errors.AsType[*client.GiveUpError](got.Err)
	if !ok || e.Run == "" || e.Key != e.Run || e.Tries != 3 {
		t.Errorf("%v", got.Err)
	}
	if n := a.Fake.Count(""); n != 0 {
		t.Errorf("bought %d times", n)
	}
}

func runOf(t *testing.T, a *agent) string {
	t.Helper()
	direct := &client.Client{BaseURL: a.URL, Credential: "k"}
	for run, err := range direct.List(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		return run.ID
	}
	t.Fatal("there is no run")
	return ""
}
