package api

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/resume"
)

// leastRetry is how long a page waits before it comes back, and at least a part of: the pages of a
// buffer that was restarted do not come all at once.
const leastRetry = time.Second

// eventsRun serves /runs/{run}/events: one run in the EventSource dialect.
func (s *Server) eventsRun(w http.ResponseWriter, r *http.Request, who reader) error {
	return s.events(w, r, who, []resume.Following{{Ask: ask(r)}}, mux.Vars(r)["run"])
}

// eventsMany serves /events: several runs on one connection, each event with the id of its own.
func (s *Server) eventsMany(w http.ResponseWriter, r *http.Request, who reader) error {
	all := ask(r)
	following, err := resume.UnderstandMany(r.URL.Query()["run"], all.LastEventID)
	if err != nil {
		return err
	}
	names := make([]string, len(following))
	for i := range following {
		names[i], following[i].Ask.Follow = following[i].Run.String(), all.Follow
	}
	return s.events(w, r, who, following, names...)
}

// events opens a tail of every run and tells what comes of them, until all have ended.
func (s *Server) events(w http.ResponseWriter, r *http.Request, who reader, following []resume.Following, names ...string) error {
	beat, err := heartbeat(r.Header, s.Limits.Heartbeat)
	if err != nil {
		return err
	}
	e := &eventStream{server: s, out: socket{w, s.Limits.Write}, beat: beat}
	e.blocks.out = e.out.write
	e.blocks.retry = int((leastRetry + rand.N(leastRetry)).Milliseconds())
	for i, name := range names {
		run, grant, err := s.readable(r.Context(), who, name)
		if err != nil {
			return err
		}
		defer s.Runs.Attach(r.Context(), run.ID, false)()
		reached, leave := s.Runs.Place(run.ID)
		defer leave()
		t, err := s.openEvents(r.Context(), run, grant, following[i].Ask)
		if err != nil {
			return about(run, err)
		}
		t.reached = reached
		t.reached(t.next)
		e.tails = append(e.tails, t)
	}
	defer e.out.hurry() // the server still has the end of the body to write
	if !e.begin() || r.Method == http.MethodHead {
		return nil
	}
	ctx, stop := s.staying(r.Context())
	defer stop()
	e.serve(ctx)
	return nil
}

// eventTail is one run of an event stream. The first part belongs to the goroutine that pulls it,
// the second to the one that writes.
type eventTail struct {
	*resume.Tail
	log    resume.Log
	follow bool
	caught bool   // it has been told that the reader has all there is
	phase  string // the last one that was told

	// ———

	id   string
	next int64 // the position after the last chunk that was written
	over bool  // its end was written, now or to an earlier connection

	reached func(pos int64) // tells how far the reader has come
}

func (s *Server) openEvents(ctx context.Context, run buffer.Run, grant resume.Grant, asked resume.Ask) (*eventTail, error) {
	start, err := resume.Understand(run.ID.String(), asked)
	if err != nil {
		return nil, err
	}
	if start.Wait > 0 {
		return nil, bad("events are told as they come: wait is for /resume")
	}
	log := s.log(start)
	t, err := resume.OpenEvents(ctx, log, run.ID, start.Otherwise(grant.From))
	switch {
	case errors.Is(err, resume.ErrOver):
		return &eventTail{Tail: &resume.Tail{Run: run, From: run.Head}, id: run.ID.String(), next: run.Head, over: true}, nil
	case err != nil && !errors.Is(err, resume.ErrNotYet):
		return nil, err
	case t.From < grant.From:
		return nil, errGrant
	}
	t.Bound(s.Pages)
	return &eventTail{Tail: t, log: log, follow: start.Follow, id: run.ID.String(), next: t.From}, nil
}

// eventStream is what one page listens to.
type eventStream struct {
	server *Server
	out    socket
	beat   time.Duration // between two signs of life; 0 is never
	tails  []*eventTail
	blocks blocks
}

// begin sends the status line and the headers: at once, whatever the runs do. It reports whether
// there is anything to tell; where there is not, 204 makes EventSource stop.
func (e *eventStream) begin() bool {
	h := e.out.w.Header()
	if len(e.tails) == 1 {
		t := e.tails[0]
		h.Set(wire.HeaderRunID, t.id)
		h.Set(wire.HeaderStatus, string(t.Run.State))
		h.Set(wire.HeaderFrom, strconv.FormatInt(t.From, 10))
		h.Set(wire.HeaderNext, strconv.FormatInt(t.Run.Head, 10))
		h.Set("Location", "/runs/"+t.id)
	}
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if e.open() == 0 {
		e.out.w.WriteHeader(http.StatusNoContent)
		return false
	}
	h.Set("Content-Type", "text/event-stream")
	e.out.w.WriteHeader(http.StatusOK)
	return e.out.flush()
}

// open is how many runs have not told their end.
func (e *eventStream) open() (n int) {
	for _, t := range e.tails {
		if !t.over {
			n++
		}
	}
	return n
}

// news is what a pull has found: a page with chunks, or something about a run that has none to give.
type news struct {
	tail   *eventTail
	page   buffer.Page
	phase  string // a new one; empty for none
	caught bool   // the reader has all there is now
	err    error  // io.EOF at the end; resume.ErrQuiet where the reader does not follow

	written chan struct{} // closed when it is, where the pull must keep the page till then
}

// serve writes what the pulls bring. There is no queue between them: a pull that has a page waits
// until it is taken, so a slow reader holds one page of each run.
func (e *eventStream) serve(ctx context.Context) {
	feed := make(chan news)
	pulling, stop := context.WithCancel(ctx)
	var pulls sync.WaitGroup
	defer pulls.Wait()
	defer stop()
	for _, t := range e.tails {
		if !t.over {
			pulls.Go(func() { e.pull(pulling, t, feed) })
		}
	}
	quiet := time.NewTimer(e.beat)
	defer quiet.Stop()
	if e.beat == 0 {
		quiet.Stop()
	}
	for e.open() > 0 {
		var written chan struct{}
		select {
		case n := <-feed:
			if n.err != nil && n.err != io.EOF && n.err != resume.ErrQuiet {
				if ctx.Err() == nil {
					panic(http.ErrAbortHandler) // the log cannot be read on: the page comes back
				}
				e.goodbye(ctx)
				return
			}
			e.tell(n)
			n.page.GiveBack() // it is in the blocks
			written = n.written
		case at := <-quiet.C:
			e.blocks.event("heartbeat", "", wire.Heartbeat{Time: at.UTC()})
		case <-ctx.Done():
			e.goodbye(ctx)
			return
		}
		if !e.blocks.send() || !e.out.flush() {
			return
		}
		if written != nil {
			close(written)
		}
		if e.beat > 0 {
			quiet.Reset(e.beat)
		}
	}
}

// pull hands over what there is of one run and what comes, until its end. It takes both bells before
// it reads.
func (e *eventStream) pull(ctx context.Context, t *eventTail, feed chan<- news) {
	defer t.Close()
	for {
		phase, moved := e.server.Runs.WatchPhase(t.Run.ID)
		changed, stop := t.log.Watch(t.Run.ID)
		n := e.look(ctx, t, phase)
		if len(n.page.Chunks) > 0 || n.phase != "" || n.caught || n.err != nil {
			select {
			case feed <- n:
			case <-ctx.Done():
			}
		}
		if n.written != nil {
			select {
			case <-n.written:
			case <-ctx.Done():
			}
		}
		if n.err != nil || ctx.Err() != nil {
			stop()
			return
		}
		if len(n.page.Chunks) == 0 {
			if n.page.Run.State != buffer.Idle {
				moved = nil
			}
			select {
			case <-changed:
			case <-moved:
			case <-ctx.Done():
			}
		}
		stop()
	}
}

// look is one look at a run.
func (e *eventStream) look(ctx context.Context, t *eventTail, phase string) news {
	n := news{tail: t}
	_, n.err = t.Poll(ctx)
	if t.Shares() {
		n.written = make(chan struct{})
	}
	n.page = t.Take() // it is written while the next one is read
	if n.err != nil {
		return n
	}
	if n.page.Run.State == buffer.Idle && phase != t.phase {
		n.phase, t.phase = phase, phase
	}
	live := n.page.Run.State.Live()
	if !t.follow && live && t.Pos() >= t.Run.Head {
		n.err = resume.ErrQuiet
	}
	if live && !t.caught && (len(n.page.Chunks) == 0 || n.err == resume.ErrQuiet) {
		n.caught, t.caught = true, true
	}
	return n
}

// tell writes news as blocks, all of them in one write.
func (e *eventStream) tell(n news) {
	t, run := n.tail, n.page.Run
	for _, c := range n.page.Chunks {
		id := t.id
		if c.Pos >= run.Head { // it is not stored: the page cannot come back for it
			id = ""
		}
		e.blocks.chunk(id, run.Framing, c)
		t.next = min(c.Pos+1, run.Head)
	}
	t.reached(t.next)
	if n.phase != "" {
		e.blocks.event("phase", "", wire.PhaseEvent{Run: t.id, Phase: n.phase})
	}
	if n.caught {
		e.blocks.event("up_to_date", "", wire.UpToDateEvent{Run: t.id, Next: t.next})
	}
	if n.err == io.EOF {
		e.blocks.event(string(run.Outcome), t.id+":"+strconv.FormatInt(run.Head, 10), endEvent(run))
		t.next = run.Head
	}
	t.over = n.err != nil
	if len(e.tails) > 1 && (len(n.page.Chunks) > 0 || n.err == io.EOF) {
		e.positions()
	}
}

// positions tells how far each run has been read, and makes that the id with which the page comes
// back: the id of an event alone names one run.
func (e *eventStream) positions() {
	at, ids := map[string]int64{}, []string{}
	for _, t := range e.tails {
		at[t.id] = t.next
		switch {
		case t.over:
			ids = append(ids, t.id+":"+strconv.FormatInt(t.next, 10))
		case t.next > 0:
			ids = append(ids, t.id+":"+strconv.FormatInt(t.next-1, 10))
		}
	}
	e.blocks.event("positions", strings.Join(ids, ","), at)
}

func endEvent(run buffer.Run) wire.EndEvent {
	end := wire.EndEvent{
		Run: run.ID.String(), State: string(run.Outcome), Reason: string(run.Reason), Status: run.Status,
		Head: run.Head, Bytes: run.Bytes, PartialBytes: int64(len(run.Partial)), Usage: wireUsage(run.Usage),
	}
	if run.Outcome == buffer.Failed && run.Header == nil {
		end.Code = failedCode(&run)
		end.Status = kinds[end.Code].status
	}
	return end
}
