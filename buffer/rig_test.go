package buffer_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/test/fakellm"
)

// dialer is how a transport reaches the provider.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// rig is a Runs over real SQLite with the scripted provider behind it.
type rig struct {
	*testing.T
	url    string          // of the provider
	fake   *fakellm.Server // nil where the test brings a provider of its own
	store  *sqlite.Store
	client *provider.Client
	runs   *buffer.Runs
	dir    string
	broken atomic.Pointer[sqlite.Point] // where the log refuses; nil where it does not

	row    string // of the table that is being tested, where there is one
	before int    // requests that the provider had got when it began
}

// bubble runs a test with a rig whose time is fake: nothing in it waits, and every instant is exact.
func bubble(t *testing.T, test func(*rig)) {
	bubbleOver(t, func(d dialer) http.RoundTripper { return transport(d) }, test)
}

// bubbleOver is bubble with a transport of the test's own, over the dialer that reaches the scripted
// provider.
func bubbleOver(t *testing.T, over func(dialer) http.RoundTripper, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		fake, dial := fakellm.Pipe(t, fakellm.Config{})
		r := newRig(t, fake.URL, over(dial))
		r.fake = fake
		test(r)
	})
}

func transport(dial dialer) *http.Transport {
	return &http.Transport{DialContext: dial, DisableCompression: true}
}

// newRig opens a store and a Runs that end with the test, which then checks what is stored. Its
// provider is at url, by way of over.
func newRig(t *testing.T, url string, over http.RoundTripper) *rig {
	t.Helper()
	log := zap.NewNop()
	if testing.Verbose() {
		log = zaptest.NewLogger(t)
	}
	r := &rig{T: t, url: url, dir: t.TempDir()}
	empty, err := emptyLog()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, logFile), empty, 0o600); err != nil {
		t.Fatal(err)
	}
	if r.store, err = sqlite.Open(t.Context(), sqlite.Config{Dir: r.dir, Sync: "normal", Log: log, Fault: r.fault}); err != nil {
		t.Fatal(err)
	}
	r.client = provider.NewClientOver(over)
	r.runs = buffer.NewRuns(r.store, r.client, buffer.Config{}, log)
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel() // no grace
		r.runs.Drain(now)
		r.client.CloseIdle()
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		broken, err := sqlite.Check(context.Background(), r.dir)
		if err != nil {
			t.Error(err)
		}
		for _, line := range broken {
			t.Error("broken:", line)
		}
	})
	return r
}

// fault refuses what the log is to be refused.
func (r *rig) fault(p sqlite.Point) error {
	if at := r.broken.Load(); at != nil && *at == p {
		return syscall.ENOSPC
	}
	return nil
}

// begin says which row of a table is tested from now on. The rows of a table share a bubble, so that
// there is one log to open and to check; they are hours apart, and nothing is left of the last one.
func (r *rig) begin(row string) {
	time.Sleep(time.Hour)
	r.row, r.before = row+": ", r.fake.Count("")
}

// Errorf names the row.
func (r *rig) Errorf(format string, args ...any) {
	r.Helper()
	r.T.Errorf(r.row+format, args...)
}

// Fatalf names the row.
func (r *rig) Fatalf(format string, args ...any) {
	r.Helper()
	r.T.Fatalf(r.row+format, args...)
}

const logFile = "spool.db"

// emptyLog is a log without runs, made once: its migrations are most of what a store's first start
// takes.
var emptyLog = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir, Sync: "normal"})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, logFile))
})

// chatBody asks for a streamed chat completion of model m.
const chatBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// route is a way to the scripted provider's route of that name.
func (r *rig) route(name string) provider.Route {
	return provider.Route{Name: name, BaseURL: r.parse(r.url + "/" + name)}
}

// approved is a fallback route that keeps everything, and calls model m m2.
func (r *rig) approved(name string) provider.Fallback {
	to := r.route(name)
	return provider.Fallback{Route: &to, Models: map[string]string{"m": "m2"}, Tools: true, Schema: true, OwnQuota: true}
}

func (r *rig) parse(text string) *url.URL {
	r.Helper()
	u, err := url.Parse(text)
	if err != nil {
		r.Fatal(err)
	}
	return u
}

// call is a streamed chat completion on route primary, with three attempts.
func (r *rig) call() buffer.Call { return r.callTo("primary") }

// callTo is call on another route.
func (r *rig) callTo(name string) buffer.Call {
	to := r.route(name)
	return buffer.Call{
		Run: buffer.Run{
			ID: ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader), Caller: "agent", State: buffer.Idle, Method: http.MethodPost, Path: "/v1/chat/completions",
			Provider: "openai", Route: to.Name, Dialect: provider.OpenAIChat, Model: "m", Stream: true, Kind: policy.ReadOnly, TTL: time.Hour,
			Budget: buffer.Budget{Attempts: 3, Elapsed: time.Hour, Since: time.Now()},
		},
		Route: to,
		Send: provider.Send{
			Method: http.MethodPost, URL: to.BaseURL.JoinPath("v1/chat/completions"), Body: []byte(chatBody),
			Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer caller"}},
		},
	}
}

// start starts a call and returns its run's id.
func (r *rig) start(c buffer.Call) ulid.ULID {
	r.Helper()
	run, existed, err := r.runs.Start(r.Context(), c)
	if err != nil || existed {
		r.Fatalf("start: existed %v, %v", existed, err)
	}
	return run.ID
}

// do starts a call and returns its run as it ended.
func (r *rig) do(c buffer.Call) buffer.Run {
	r.Helper()
	return r.ended(r.start(c))
}

// ended waits for a run's end and returns it with its ledger.
func (r *rig) ended(id ulid.ULID) buffer.Run {
	r.Helper()
	return r.until(id, func(run buffer.Run) bool { return run.State.Ended() })
}

// until waits for a run's commit after which it is as wanted.
func (r *rig) until(id ulid.ULID, wanted func(buffer.Run) bool) buffer.Run {
	r.Helper()
	for {
		changed, stop := r.store.Watch(id)
		run := r.get(id)
		if wanted(run) {
			stop()
			return run
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			r.Fatalf("run is still %s", run.State)
		}
		stop()
	}
}

func (r *rig) get(id ulid.ULID) buffer.Run {
	r.Helper()
	run, err := r.store.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return run
}

// bytes is all that is stored of a run's answer.
func (r *rig) bytes(run buffer.Run) []byte {
	r.Helper()
	var b []byte
	for from := int64(0); from < run.Head; {
		page, err := r.store.Read(r.Context(), run.ID, from, 1<<20)
		if err != nil {
			r.Fatal(err)
		}
		for _, c := range page.Chunks {
			b = append(b, c.Data...)
		}
		from = page.Next(from)
	}
	return b
}

// entry is what a ledger row says of one send.
type entry struct {
	Route  string
	Class  policy.Class
	Action policy.Action
	Sent   policy.Sent
	Billed policy.Billed
}

func entries(run buffer.Run) []entry {
	var list []entry
	for _, a := range run.Attempts {
		list = append(list, entry{a.Route, a.Class, a.Action, a.SentState, a.Billed})
	}
	return list
}

// wantLedger holds the ledger against what should be there, row by row.
func (r *rig) wantLedger(run buffer.Run, want ...entry) {
	r.Helper()
	if got := entries(run); !slices.Equal(got, want) {
		r.Errorf("ledger:\n got %+v\nwant %+v", got, want)
	}
	for i, a := range run.Attempts {
		if a.N != i+1 || a.Ended.IsZero() {
			r.Errorf("row %d is numbered %d and ended at %v", i+1, a.N, a.Ended)
		}
	}
}

// wantState checks how a run ended.
func (r *rig) wantState(run buffer.Run, state buffer.State, reason buffer.Reason) {
	r.Helper()
	if run.State != state || run.Reason != reason {
		r.Errorf("run is %s %q, want %s %q", run.State, run.Reason, state, reason)
	}
}

// sends are the requests that reached the provider.
func (r *rig) sends() []fakellm.Request { return r.fake.Requests()[r.before:] }

// wantSends checks how many requests reached the provider, now and a long time later.
func (r *rig) wantSends(want int) {
	r.Helper()
	time.Sleep(time.Hour)
	if got := len(r.sends()); got != want {
		r.Errorf("the provider got %d requests, want %d", got, want)
	}
}

// wantBytes checks that the log holds exactly these events.
func (r *rig) wantBytes(run buffer.Run, events ...[]byte) {
	r.Helper()
	if got, want := r.bytes(run), bytes.Join(events, nil); !bytes.Equal(got, want) {
		r.Errorf("log holds\n%q, want\n%q", got, want)
	}
}

const eventStream = "text/event-stream"

// The events of a chat completion, one of each kind. A comment is never content.
var (
	role, token, finish, figures, done = chatEvents()
	comment                            = []byte(": keep alive\n\n")
)

func chatEvents() (role, token, finish, figures, done []byte) {
	e := fakellm.Chat("word ")
	return e[0], e[1], e[2], e[3], e[4]
}

// answer is a stream of these steps after its head.
func answer(steps ...fakellm.Op) []fakellm.Op {
	return append([]fakellm.Op{fakellm.Head(eventStream)}, steps...)
}

// whole is a good answer that ends properly.
func whole(texts ...string) []fakellm.Op {
	return fakellm.Stream(eventStream, fakellm.Play(fakellm.Chat(texts...), 0)...)
}

// beats writes an event n times, each after a pause.
func beats(n int, every time.Duration, event []byte) fakellm.Op {
	return fakellm.Repeat(n, every, string(event))
}

// refusal is a complete answer with a status of failure.
func refusal(status int, headers ...string) fakellm.Op {
	return refusalOf(status, `{"error":{"message":"no"}}`, headers...)
}

func refusalOf(status int, body string, headers ...string) fakellm.Op {
	op := fakellm.JSON(status, body)
	op.Headers = map[string][]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		op.Headers[headers[i]] = []string{headers[i+1]}
	}
	return op
}

var hang = fakellm.Hang(0)
