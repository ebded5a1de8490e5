package crash

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// call is one operation of an agent, over all lives of the service, and what its clients know of it.
type call struct {
	script
	key  string
	body string
	id   string // the run id that the agent chose; empty for none

	mu        sync.Mutex
	seen      []seen
	told      []wire.Run // ended runs, as cancel answered
	cancelled bool       // cancel was asked
	acked     bool       // ack was asked
}

func newCall(key, id string, s script) *call {
	stream := strconv.FormatBool(!s.single)
	return &call{
		script: s, key: key, id: id,
		body: `{"model":"` + key + `","stream":` + stream + `,"messages":[{"role":"user","content":"say ` + key + `"}]}`,
	}
}

func (c *call) path() string { return "/openai/" + c.key + "/v1/chat/completions" }

// seen is what one reader got of one run.
type seen struct {
	native   bool   // on the provider's route; else on /resume
	from     int64  // the position of its first byte
	status   int    // 0 where no answer came
	run      string // whose answer it is; empty where it does not say
	next     int64  // the head when the answer began
	replayed bool
	bytes    []byte
	clean    bool // it ended, and was not cut
}

// agent makes requests to one life of the service.
type agent struct {
	url  string
	http *http.Client
}

func newAgent(url string) *agent {
	return &agent{url, &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}}}
}

func (a *agent) close() { a.http.CloseIdleConnections() }

// ask makes a request and reads its answer until it ends or limit bytes have come, then leaves.
// begun is called when there are headers.
func (a *agent) ask(ctx context.Context, method, path, body string, header http.Header, limit int64, begun func(seen)) seen {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return seen{}
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := a.http.Do(req)
	if err != nil {
		return seen{} // killed before it answered
	}
	defer resp.Body.Close()
	s := seen{status: resp.StatusCode, run: resp.Header.Get(wire.HeaderRunID), replayed: resp.Header.Get(wire.HeaderReplayed) == "true"}
	s.from, _ = strconv.ParseInt(resp.Header.Get(wire.HeaderFrom), 10, 64) // an error has none
	s.next, _ = strconv.ParseInt(resp.Header.Get(wire.HeaderNext), 10, 64)
	begun(s)
	s.bytes, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	s.clean = err == nil && int64(len(s.bytes)) < limit
	return s
}

func ignore(seen) {}

// get reads a native route to its end.
func (a *agent) get(ctx context.Context, path string) seen {
	return a.ask(ctx, http.MethodGet, path, "", nil, math.MaxInt64, ignore)
}

// post makes the call and reads its answer to the end, or leaves after limit bytes.
func (a *agent) post(ctx context.Context, c *call, limit int64, begun func(seen)) seen {
	h := http.Header{"Content-Type": {"application/json"}, wire.HeaderKey: {c.key}, wire.HeaderHeartbeat: {"off"}}
	if c.id != "" {
		h.Set(wire.HeaderRunID, c.id)
	}
	s := a.ask(ctx, http.MethodPost, c.path(), c.body, h, limit, begun)
	s.native = true
	return s
}

// plan is what the clients of a call do in one life.
type plan struct {
	begin  time.Duration // since the life's start
	limit  int64         // bytes after which the caller leaves
	early  bool          // a reader comes by key alone, at the same time as the caller
	tail   bool          // a reader comes once there is something to read
	cancel time.Duration // after the headers; 0 is never
	ack    bool          // after a clean end
}

// play does what is planned, until its end or the service's.
func (a *agent) play(ctx context.Context, c *call, p plan) {
	wait(ctx, p.begin)
	var others sync.WaitGroup
	defer others.Wait()
	if p.early {
		others.Go(func() { c.saw(a.get(ctx, "/resume?key="+c.key)) })
	}
	caller := a.post(ctx, c, p.limit, func(s seen) {
		if s.status != http.StatusOK {
			return
		}
		if p.tail {
			others.Go(func() {
				c.saw(a.get(ctx, "/runs/"+s.run+"/resume?from="+strconv.FormatInt(s.next/2, 10)))
			})
		}
		if p.cancel > 0 {
			others.Go(func() { a.cancel(ctx, c, s.run, p.cancel) })
		}
	})
	c.saw(caller)
	if p.ack && caller.clean && caller.status == http.StatusOK {
		c.asks(&c.acked)
		a.ask(ctx, http.MethodPost, "/runs/"+caller.run+"/ack", "", nil, math.MaxInt64, ignore)
	}
}

func (a *agent) cancel(ctx context.Context, c *call, run string, after time.Duration) {
	wait(ctx, after)
	c.asks(&c.cancelled)
	s := a.ask(ctx, http.MethodPost, "/runs/"+run+"/cancel", "", nil, math.MaxInt64, ignore)
	var r wire.Run
	if s.status == http.StatusOK && s.clean && json.Unmarshal(s.bytes, &r) == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, r)
	}
}

// saw keeps what a reader got, if it got anything.
func (c *call) saw(s seen) {
	if s.status == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, s)
}

func (c *call) asks(what *bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what = true
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
