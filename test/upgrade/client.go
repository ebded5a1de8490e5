package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// tally is what clients see, of all of them.
type tally struct {
	requests, failed, moved atomic.Int64
	longest                 atomic.Int64
	first                   atomic.Pointer[string] // the first thing that went wrong
}

func (t *tally) wrong(err error) {
	t.failed.Add(1)
	text := err.Error()
	t.first.CompareAndSwap(nil, &text)
}

// client is one caller or reader, with connections of its own.
type client struct {
	*tally
	url  string
	http *http.Client
}

func newClient(t *tally, url string) *client {
	return &client{t, url, &http.Client{Transport: &http.Transport{}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask makes a request that must be answered with 200. Its body cannot be sent again: net/http must not make
// good what the service does.
func (c *client) ask(ctx context.Context, method, path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer demo")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c.requests.Add(1)
	resp, err := c.http.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // as much as there is
		resp.Body.Close()
		err = fmt.Errorf("%s %s: %s %s", method, path, resp.Status, b)
	}
	if err != nil && ctx.Err() == nil {
		c.wrong(err)
	}
	return resp, err
}

// call makes the call of a route, whose answer the caller reads and closes.
func (c *client) call(ctx context.Context, route string) (resp *http.Response, id string, err error) {
	resp, err = c.ask(ctx, http.MethodPost, "/openai/"+route+"/v1/chat/completions", `{"model":"m","stream":true}`,
		wire.HeaderKey, route, wire.HeaderHeartbeat, "off")
	if err != nil {
		return nil, "", err
	}
	return resp, resp.Header.Get(wire.HeaderRunID), nil
}

// poll makes new calls one after the other until ctx ends. Each must be answered to its end.
func (c *client) poll(ctx context.Context, name string) (calls int) {
	for ; ctx.Err() == nil; calls++ {
		begun := time.Now()
		resp, _, err := c.call(context.WithoutCancel(ctx), name+"-"+strconv.Itoa(calls))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && !bytes.HasSuffix(b, []byte("data: [DONE]\n\n")) {
			err = errors.New("an answer without its end")
		}
		if err != nil {
			c.wrong(err)
		}
		for took := int64(time.Since(begun)); ; {
			if l := c.longest.Load(); took <= l || c.longest.CompareAndSwap(l, took) {
				break
			}
		}
	}
	return calls
}

// stay reads the answer on the connection of the call itself, to its end.
func (c *client) stay(ctx context.Context, route string, begun func(id string)) ([][]byte, error) {
	resp, id, err := c.call(ctx, route)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	begun(id)
	b, err := io.ReadAll(resp.Body)
	return events(b), err
}

// resume reads the answer's bytes, from wherever it was cut, until it has ended.
func (c *client) resume(ctx context.Context, route string, begun func(id string)) ([][]byte, error) {
	id, err := c.begin(ctx, route)
	if err != nil {
		return nil, err
	}
	begun(id)
	var got []byte
	for {
		resp, err := c.ask(ctx, http.MethodGet, fmt.Sprintf("/runs/%s/resume?from_byte=%d", id, len(got)), "")
		if err != nil {
			return events(got), err
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got = append(got, b...); err == nil {
			return events(got), nil
		}
		run, err := c.status(ctx, id) // a cut does not tell whether there is more to come
		switch {
		case err != nil:
			return events(got), err
		case run.State != "idle" && run.State != "streaming" && run.State != "completed":
			return events(got), fmt.Errorf("%s, %s", run.State, run.Reason)
		}
		c.moved.Add(1)
	}
}

func (c *client) status(ctx context.Context, id string) (run wire.Run, err error) {
	resp, err := c.ask(ctx, http.MethodGet, "/runs/"+id, "")
	if err != nil {
		return run, err
	}
	defer resp.Body.Close()
	return run, json.NewDecoder(resp.Body).Decode(&run)
}

// page reads the answer as a page's EventSource does, which comes back when it is told to.
func (c *client) page(ctx context.Context, route string, begun func(id string)) (got [][]byte, err error) {
	id, err := c.begin(ctx, route)
	if err != nil {
		return nil, err
	}
	begun(id)
	last := ""
	for {
		var header []string
		if last != "" {
			header = []string{"Last-Event-ID", last}
		}
		resp, err := c.ask(ctx, http.MethodGet, "/runs/"+id+"/events", "", header...)
		if err != nil {
			return got, err
		}
		retry := time.Duration(0)
		for b := range blocks(resp.Body) {
			if ms, ok := b["retry"]; ok {
				n, _ := strconv.Atoi(ms) // 0 is as good
				retry = time.Duration(n) * time.Millisecond
			}
			if b["id"] != "" {
				last = b["id"]
			}
			switch b["event"] {
			case "":
				if b["data"] != "" {
					got = append(got, []byte("data: "+b["data"]+"\n\n"))
				}
			case "completed", "interrupted", "cancelled", "failed":
				resp.Body.Close()
				return got, nil
			}
		}
		resp.Body.Close()
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
		c.moved.Add(1)
		pause(ctx, retry)
	}
}

// blocks yields the fields of each block of an event stream whose blocks have each field once.
func blocks(r io.Reader) func(func(map[string]string) bool) {
	return func(yield func(map[string]string) bool) {
		block := map[string]string{}
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if lines.Text() != "" {
				name, value, _ := strings.Cut(lines.Text(), ": ")
				block[name] = value
				continue
			}
			if !yield(block) {
				return
			}
			block = map[string]string{}
		}
	}
}

// begin makes the call and leaves when its answer has begun.
func (c *client) begin(ctx context.Context, route string) (id string, err error) {
	resp, id, err := c.call(ctx, route)
	if err == nil {
		err = resp.Body.Close()
	}
	return id, err
}

// events cuts a stream behind its blank lines.
func events(b []byte) [][]byte {
	all := bytes.SplitAfter(b, []byte("\n\n"))
	if n := len(all); len(all[n-1]) == 0 {
		all = all[:n-1]
	}
	return all
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
