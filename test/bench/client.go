package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

const (
	callBody   = `{"model":"load","stream":true,"messages":[{"role":"user","content":"go"}]}`
	readSize   = 32 << 10
	maxRuns    = 1 << 20 // calls of one client
	maxBroken  = 50      // then a client gives up
	brokenWait = 50 * time.Millisecond
)

// client makes one call after the other and checks every event of every answer. It is for one
// goroutine; its results are read after that has ended.
type client struct {
	http      *http.Client
	method    string
	url       string
	events    int64        // of one run
	calls     int          // how many it makes
	measuring *atomic.Bool // whether now counts
	opened    func()       // called with the first event of a run

	tally   tally
	counted int64     // events while it counted
	latency histogram // of those, from the provider's write
	first   histogram // from a call that began while it counted to its first event

	run   order
	id    string // of the last run, where the program gives one
	began time.Time
	timed bool // began while it counted
}

// repeat calls until ctx ends.
func (c *client) repeat(ctx context.Context) {
	for range c.calls {
		err := c.call(ctx)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			continue
		}
		if c.tally.Broken++; c.tally.Broken >= maxBroken || pause(ctx, brokenWait) != nil {
			break
		}
	}
	if c.tally.Events == 0 {
		c.tally.Silent = 1
	}
}

// call makes one call and reads its answer to the end.
func (c *client) call(ctx context.Context) error {
	c.run, c.began, c.timed = order{}, time.Now(), c.measuring.Load()
	resp, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.id = resp.Header.Get(wire.HeaderRunID)
	return c.read(resp)
}

// read reads an answer. No error is an end, whether it is the run's own or not.
func (c *client) read(resp *http.Response) error {
	defer resp.Body.Close()
	buf := make([]byte, readSize)
	used := 0
	for {
		n, err := resp.Body.Read(buf[used:])
		used = copy(buf, c.take(buf[:used+n]))
		switch {
		case errors.Is(err, io.EOF):
			c.run.end(c.events, &c.tally)
			return nil
		case err != nil:
			return err
		case used == len(buf):
			return errors.New("an event without end")
		}
	}
}

// open makes the call. Where the answer is to be read elsewhere, it goes there.
func (c *client) open(ctx context.Context) (*http.Response, error) {
	resp, err := c.request(ctx, c.method, c.url)
	if err != nil || resp.StatusCode != http.StatusCreated {
		return resp, err
	}
	resp.Body.Close()
	return c.follow(ctx, resp.Header.Get("Location"))
}

// follow reads a stream of the Durable Streams protocol.
func (c *client) follow(ctx context.Context, url string) (*http.Response, error) {
	resp, err := c.request(ctx, http.MethodGet, url)
	if err == nil {
		resp.Body = openEnvelope(resp.Body)
	}
	return resp, err
}

func (c *client) request(ctx context.Context, method, url string) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if method == http.MethodPost {
		body = strings.NewReader(callBody)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return resp, nil
}

var blankLine = []byte("\n\n")

// take checks the whole events in b, which have come just now, and returns what is left.
func (c *client) take(b []byte) []byte {
	now := time.Now()
	counts := c.measuring.Load()
	for {
		block, rest, found := bytes.Cut(b, blankLine)
		if !found {
			return b
		}
		b = rest
		e, ok := readEvent(block)
		if !ok {
			c.tally.Damaged++
			continue
		}
		if c.run.next == 0 && !e.done {
			c.start(now)
		}
		c.run.see(e, &c.tally)
		if counts && !e.done {
			c.counted++
			c.latency.add(time.Duration(now.UnixNano() - e.sent))
		}
	}
}

// start is called with the first event of a run.
func (c *client) start(now time.Time) {
	if c.timed {
		c.first.add(now.Sub(c.began))
	}
	c.opened()
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
