package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spool-dev/spool/api/wire"
)

// body is every call's.
const body = `{"model":"load","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// do makes a request of a node, as the one caller that there is.
func do(ctx context.Context, method, url, text string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// stream is a call whose events have numbers, and what was seen of it.
type stream struct {
	f     *fleet
	owner int // the node that the call was made of
	run   string
	next  atomic.Int64 // the number after the last event that a reader has seen: all before are acknowledged
	wrong atomic.Int64 // events that came twice, or out of order
}

// begin makes a call of a node that is answered with so many events, so many a second. The caller leaves when
// the answer has begun: what goes on is for the readers.
func (f *fleet) begin(ctx context.Context, owner, events, rate int) (*stream, error) {
	path := fmt.Sprintf("/openai/v1/chat/completions?events=%d&rate=%d&size=200", events, rate)
	resp, err := do(ctx, http.MethodPost, f.urls[owner]+path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body) // for people
		return nil, fmt.Errorf("call of node %d: %s: %s", owner, resp.Status, b)
	}
	return &stream{f: f, owner: owner, run: resp.Header.Get("X-Buffer-Run-Id")}, nil
}

// status is the run as a node has it.
func (s *stream) status(ctx context.Context, node int) (run wire.Run, err error) {
	resp, err := do(ctx, http.MethodGet, s.f.urls[node]+"/runs/"+s.run, "")
	if err != nil {
		return run, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return run, fmt.Errorf("run %s on node %d: %s", s.run, node, resp.Status)
	}
	return run, json.NewDecoder(resp.Body).Decode(&run)
}

// read follows the run to its end, on whichever node serves it, and goes on elsewhere where that one is
// lost. It begins at node.
func (s *stream) read(ctx context.Context, node int) (run wire.Run, err error) {
	err = eventually(ctx, func() error {
		defer func() { node = (node + 1) % len(s.f.urls) }()
		if _, err := s.part(ctx, node, &s.next); err != nil {
			return err
		}
		if run, err = s.status(ctx, node); err != nil {
			return err
		}
		if run.Ended == nil || s.next.Load() < events(run) {
			return fmt.Errorf("run %s is %s at %d of %d", s.run, run.State, s.next.Load(), run.Head)
		}
		return nil
	})
	return run, err
}

// events is how many numbered events a run has: a whole answer ends with one that has none.
func events(run wire.Run) int64 {
	if run.State == "completed" {
		return run.Head - 1
	}
	return run.Head
}

// part reads from next on, as far as one connection goes. It returns how many events came.
func (s *stream) part(ctx context.Context, node int, next *atomic.Int64) (n int64, err error) {
	resp, err := do(ctx, http.MethodGet, fmt.Sprintf("%s/runs/%s/resume?from=%d", s.f.urls[node], s.run, next.Load()), "")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		return 0, fmt.Errorf("resume on node %d: %s", node, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		text, numbered := strings.CutPrefix(lines.Text(), `data: {"i":"`)
		if !numbered {
			continue
		}
		digits, _, _ := strings.Cut(text, `"`)
		i, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return n, err
		}
		if i != next.Load() {
			s.wrong.Add(1)
			return n, fmt.Errorf("run %s: event %d where %d should be", s.run, i, next.Load())
		}
		next.Add(1)
		n++
	}
	return n, nil // how it ended is for the status to say
}

// tally is what became of some streams.
type tally struct {
	acknowledged, lost, wrong int64
	completed, interrupted    int
}

// count reads each run again, from its beginning on a node, and holds it against what was seen.
func (f *fleet) count(ctx context.Context, node int, all []*stream) (t tally, err error) {
	for _, s := range all {
		run, err := s.status(ctx, node)
		if err != nil {
			return t, err
		}
		var next atomic.Int64
		err = eventually(ctx, func() error {
			_, err := s.part(ctx, node, &next)
			if err == nil && next.Load() < events(run) {
				err = errors.New("not whole yet")
			}
			return err
		})
		if err != nil {
			return t, fmt.Errorf("run %s: %w", s.run, err)
		}
		t.acknowledged += s.next.Load()
		t.lost += max(0, s.next.Load()-next.Load())
		t.wrong += s.wrong.Load()
		if run.State == "completed" {
			t.completed++
		} else {
			t.interrupted++
		}
	}
	return t, nil
}
