package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

const (
	lossStreams  = 20
	lossRun      = paceRate * 10    // events: still under way when the process is killed, over before the readers give up
	lossAfter    = 2 * time.Second  // is when the process is killed
	lossPatience = 15 * time.Second // of readers that have come back
)

// loss is what became of streams whose server was killed. Every stream is counted in one of the last
// five.
type loss struct {
	Target  target `json:"target"`
	Killed  string `json:"killed"` // which of its processes
	Streams int    `json:"streams"`
	Seen    int64  `json:"seen"` // events that clients had
	Gone    int64  `json:"gone"` // of those, not to be read again

	Whole   int `json:"whole"`   // read to the provider's own end
	Cut     int `json:"cut"`     // the answer was aborted: its reader knows that it is not whole
	Ended   int `json:"ended"`   // it ended as if it were whole
	Silent  int `json:"silent"`  // nothing came any more, and no end
	Refused int `json:"refused"` // it could not be read again
}

// stage lets clients read, kills, and has each client come back and read its stream from its beginning. The
// kill comes after the first event of the last client.
func (l *loss) stage(ctx context.Context, url, base string, after time.Duration, kill func() error) error {
	pool := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: l.Streams}}
	readers := make([]*returner, l.Streams)
	clients := make([]*client, l.Streams)
	for i := range readers {
		readers[i] = newReturner(pool, url)
		clients[i] = readers[i].client
	}
	f := launch(ctx, clients, func(ctx context.Context, i int) { readers[i].leave(ctx) })
	defer f.land()
	if err := f.opened(ctx, peerLimit); err != nil && !errors.Is(err, errLate) {
		return err
	}
	if err := pause(ctx, after); err != nil {
		return err
	}
	if err := kill(); err != nil {
		return err
	}
	f.land() // who still has a connection comes back all the same
	again, cancel := context.WithTimeout(ctx, lossPatience)
	defer cancel()
	var reading sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() { r.comeBack(again, base) })
	}
	reading.Wait()
	for _, r := range readers {
		l.count(r)
	}
	return ctx.Err()
}

// returner reads a stream, loses it, and comes back for it.
type returner struct {
	client *client
	seen   int64
	where  string // to come back to, as the answer said
	wraps  bool   // what is there is a stream of the Durable Streams protocol

	back end
	had  int64 // events, in order from the first one, that were there
}

// end is how the second reading ended.
type end int

const (
	endRefused end = iota
	endWhole
	endCut
	endEnded
	endSilent
)

func newReturner(pool *http.Client, url string) *returner {
	return &returner{client: &client{http: pool, method: http.MethodPost, url: url, events: lossRun, measuring: new(atomic.Bool), opened: func() {}}}
}

// leave reads until the connection breaks, or ctx ends.
func (r *returner) leave(ctx context.Context) {
	resp, err := r.client.request(ctx, r.client.method, r.client.url)
	if err != nil {
		return
	}
	r.where = resp.Header.Get("Location")
	if id := resp.Header.Get(wire.HeaderRunID); id != "" {
		r.where = "/runs/" + id + "/resume"
	}
	if r.wraps = resp.StatusCode == http.StatusCreated; r.wraps {
		resp.Body.Close()
		if resp, err = r.client.follow(ctx, r.where); err != nil {
			return
		}
	}
	_ = r.client.read(resp) // that it breaks is the plan
	r.seen = r.client.run.next
}

// comeBack reads the stream from its beginning, for as long as ctx allows.
func (r *returner) comeBack(ctx context.Context, base string) {
	c := newReturner(r.client.http, "").client
	resp, err := r.reopen(ctx, c, base)
	if err != nil {
		return
	}
	err = c.read(resp)
	r.had = c.run.next
	switch {
	case c.run.done && c.tally.Lost == 0:
		r.back = endWhole
	case ctx.Err() != nil:
		r.back = endSilent
	case err != nil:
		r.back = endCut
	default:
		r.back = endEnded
	}
}

func (r *returner) reopen(ctx context.Context, c *client, base string) (*http.Response, error) {
	if r.wraps {
		return c.follow(ctx, r.where)
	}
	if strings.HasPrefix(r.where, "/") {
		return c.request(ctx, http.MethodGet, base+r.where)
	}
	return c.request(ctx, http.MethodGet, r.where)
}

func (l *loss) count(r *returner) {
	l.Seen += r.seen
	l.Gone += max(0, r.seen-r.had)
	switch r.back {
	case endWhole:
		l.Whole++
	case endCut:
		l.Cut++
	case endEnded:
		l.Ended++
	case endSilent:
		l.Silent++
	default:
		l.Refused++
	}
}
