package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

var zeroID ulid.ULID

// lastBytes are as many as tell whether an event was finished.
const lastBytes = 4

// answer is one tail of one run on its way to one client. A provider route and /resume differ in
// what they add: native answers carry the provider's status, heartbeats, and an error event where
// the run was cut; /resume carries the bytes alone.
type answer struct {
	server    *Server
	w         http.ResponseWriter
	r         *http.Request
	run       buffer.Run
	native    bool // a provider route
	replayed  bool // the run existed before this call
	partial   bool // the broken tail is wanted too
	heartbeat time.Duration
	mint      time.Duration // how long the token lives that the headers carry; 0 for none
	floor     int64         // the first position that the reader may have
	returns   bool          // the reader comes back by itself after a cut

	reached func(pos int64) // tells how far the reader has come
	leave   func()          // … and that it comes no further

	tail *resume.Tail
	last []byte // the end of the chunk that was delivered last; empty before the first
	skip int64  // bytes of the next chunk that the client has
	sent bool   // the status line has gone out
	held bool   // … before the run had committed
}

// serve places the tail and delivers it to its end. It returns when the answer has ended cleanly,
// and panics with http.ErrAbortHandler when it must not look whole.
func (a *answer) serve(start resume.Start) {
	ctx := a.r.Context()
	defer a.server.Runs.Attach(ctx, a.run.ID, a.native)()
	defer a.socket().hurry() // the server still has the end of the body to write
	there, ok := a.place(ctx, start)
	if !ok {
		return
	}
	defer a.leave()
	defer a.tail.Close()
	if a.r.Method == http.MethodHead { // how the answer would begin now; there is nothing to wait for
		a.begin(&a.tail.Run)
		return
	}
	if a.returns && (start.Follow || start.Wait > 0) {
		var stop context.CancelFunc
		ctx, stop = a.server.staying(ctx)
		defer stop()
	}
	switch {
	case !there && start.Wait > 0:
		a.nothing(&a.tail.Run)
	case !there:
		a.begin(&a.tail.Run) // … and a clean end: nothing of what was asked for is stored
	case start.Wait > 0:
		a.poll(ctx, start.Wait)
	case !start.Follow:
		a.stored(ctx)
	default:
		a.follow(ctx)
	}
}

// place opens the tail at its start, or refuses the call. there says that the position exists: else the answer
// has nothing to wait for.
func (a *answer) place(ctx context.Context, start resume.Start) (there, ok bool) {
	t, err := resume.Open(ctx, a.server.log(start), a.run.ID, start)
	there = !errors.Is(err, resume.ErrNotYet)
	if err != nil && there {
		a.refuse(err)
		return false, false
	}
	if t.From < a.floor {
		a.refuse(errGrant)
		return false, false
	}
	t.Bound(a.server.Pages)
	a.tail, a.skip = t, t.Skip
	a.reached, a.leave = a.server.Runs.Place(a.run.ID)
	a.reached(t.From)
	return there, true
}

// log is what a reader reads. Who follows a run to its end may have what could not be stored as well; who
// comes back for each page would be given it again and again.
func (s *Server) log(start resume.Start) resume.Log {
	if start.Follow && start.Wait == 0 {
		return s.Runs.Following(s.Store)
	}
	return s.Store
}

func (a *answer) refuse(err error) {
	if a.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // as in refuse
	}
	f := *asFault(err)
	f.run = a.run.ID.String()
	if a.native {
		writeProviderError(a.w, a.run.Dialect, &f)
		return
	}
	writeProblem(a.w, &f)
}

// follow delivers what is there and what comes, until the end.
func (a *answer) follow(ctx context.Context) {
	wait := a.server.Limits.Hold
	for {
		page, err := a.next(ctx, wait)
		switch {
		case errors.Is(err, resume.ErrQuiet):
			if !a.quiet(page) {
				return
			}
		case err == nil, err == io.EOF:
			if !a.deliver(page) {
				return
			}
			if err == io.EOF {
				a.end(&page.Run)
				return
			}
		default:
			a.broken(err)
			return
		}
		wait = a.pause(&page.Run)
	}
}

// next is the tail's next page, or resume.ErrQuiet after wait; 0 waits without end. A run that has
// committed has a status to send while its next chunk is waited for.
func (a *answer) next(ctx context.Context, wait time.Duration) (*buffer.Page, error) {
	if !a.sent {
		page, err := a.tail.Poll(ctx)
		if err != nil || len(page.Chunks) > 0 {
			return page, err
		}
		if page.Run.State != buffer.Idle {
			a.begin(&page.Run)
			a.flush()
			wait = a.pause(&page.Run)
		}
	}
	if wait <= 0 {
		return a.tail.Next(ctx)
	}
	return a.tail.Within(ctx, wait)
}

// pause is how long a quiet connection stays without a sign of life; 0 for ever.
func (a *answer) pause(run *buffer.Run) time.Duration {
	if !a.sent { // the hold is over and the call asked for no stream: nothing goes out before the answer
		return 0
	}
	if a.beat(run) == nil {
		return 0
	}
	return a.heartbeat
}

// beat is the heartbeat that this answer may carry; nil for none.
func (a *answer) beat(run *buffer.Run) []byte {
	if !a.native || a.heartbeat == 0 || a.skip > 0 {
		return nil
	}
	return provider.Heartbeat(run.Dialect, streamFraming(run))
}

// quiet is called when nothing has come for a while: it decides the status line where the call is
// held back, and else shows that the connection lives.
func (a *answer) quiet(page *buffer.Page) bool {
	if !a.sent {
		if !page.Run.Stream {
			return true
		}
		a.held = page.Run.Status == 0
		a.begin(&page.Run)
	}
	return a.write(a.beat(&page.Run)) && a.flush() // without a beat too: the status may have been decided just now
}

// deliver writes one page and flushes it once.
func (a *answer) deliver(page *buffer.Page) bool {
	if !a.sent {
		a.begin(&page.Run)
	}
	if a.held && page.Run.State == buffer.Failed {
		return true // the refusal's body is no part of a stream that has begun; end tells of it
	}
	if n := len(page.Chunks); n > 0 {
		data := page.Chunks[n-1].Data
		a.last = append(a.last[:0], data[max(0, len(data)-lastBytes):]...) // the chunk itself may be large
		if !a.socket().writeAll(page, a.skip) {
			a.tail.Take() // and gives it to nobody
			return false
		}
		a.skip = 0
		a.reached(page.Chunks[n-1].Pos + 1)
	}
	return a.flush()
}

// begin sends the status line and the headers.
func (a *answer) begin(run *buffer.Run) {
	h := a.w.Header()
	yieldID(h, a.r, run.Header)
	mergeHeader(h, run.Header)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", contentType(run))
	}
	sandbox(h)
	a.describe(h, run)
	if a.native && run.State == buffer.Failed && run.Header == nil {
		if k := kinds[failedCode(run)]; forGood(run) {
			h.Set("X-Should-Retry", "false")
		} else if k.retryAfter > 0 {
			h.Set("Retry-After", retryAfter(0, k.retryAfter))
		}
	}
	a.w.WriteHeader(a.status(run))
	a.sent = true
}

// contentType is for a run whose provider has named none.
func contentType(run *buffer.Run) string {
	if run.State == buffer.Failed || !run.Stream {
		return "application/json"
	}
	return provider.ContentType(run.Dialect, streamFraming(run))
}

// describe adds what the buffer says about the run.
func (a *answer) describe(h http.Header, run *buffer.Run) {
	id := run.ID.String()
	h.Set(wire.HeaderRunID, id)
	h.Set(wire.HeaderStatus, string(run.State))
	h.Set(wire.HeaderFrom, strconv.FormatInt(a.tail.From, 10))
	h.Set(wire.HeaderNext, strconv.FormatInt(run.Head, 10))
	h.Set("Location", "/runs/"+id)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if !a.native {
		return
	}
	h.Set(wire.HeaderAttempts, strconv.Itoa(run.Sends))
	if a.replayed {
		h.Set(wire.HeaderReplayed, "true")
	}
	if a.mint > 0 {
		h.Set(wire.HeaderToken, a.server.Tokens.Mint(resume.Grant{Run: run.ID, Expires: time.Now().Add(a.mint)}))
	}
	if a.server.Cloudflare {
		h.Set(wire.HeaderCFRunID, id)
	}
}

// status is the answer's status. A run that was shown before it committed, and every /resume, is 200.
func (a *answer) status(run *buffer.Run) int {
	switch {
	case !a.native || a.held:
		return http.StatusOK
	case run.Status != 0:
		return run.Status
	case run.State.Ended():
		return kinds[failedCode(run)].status
	}
	return http.StatusOK
}

// write sends bytes to the client within the time that a write may take.
func (a *answer) write(b []byte) bool { return a.socket().write(b) }

func (a *answer) flush() bool { return a.socket().flush() }

func (a *answer) socket() socket { return socket{a.w, a.server.Limits.Write} }

// broken ends an answer whose log cannot be read on, or whose client has left.
func (a *answer) broken(err error) {
	switch {
	case a.r.Context().Err() != nil:
		return
	case a.returns && a.server.left() && !a.sent:
		a.begin(&a.tail.Run)
		a.abort()
	case !a.sent:
		a.refuse(err)
	default:
		panic(http.ErrAbortHandler)
	}
}
