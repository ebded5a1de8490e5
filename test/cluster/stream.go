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
	f      *fleet
	run    string
	answer io.ReadCloser // the call's own, of a caller who stays
	next   atomic.Int64  // the number after the last event that a reader has seen: all before are acknowledged
	wrong  atomic.Int64  // events that came twice, or out of order
	cut    atomic.Bool   // the caller stayed, and had to go on elsewhere
}

// errDraining: the node takes no new calls, since it is about to end.
var errDraining = errors.New("the node drains")

// begin makes a call of a node that is answered with so many events, so many a second. The caller leaves when
// the answer has begun: what goes on is for the readers.
func (f *fleet) begin(ctx context.Context, owner, events, rate int) (*stream, error) {
	s, err := f.call(ctx, owner, events, rate)
	if err == nil {
		err = s.answer.Close()
		s.answer = nil
	}
	return s, err
}

// call is begin of a caller who stays.
func (f *fleet) call(ctx context.Context, owner, events, rate int) (*stream, error) {
	path := fmt.Sprintf("/openai/v1/chat/completions?events=%d&rate=%d&size=200", events, rate)
	resp, err := do(ctx, http.MethodPost, f.node(owner).url+path, body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body) // for people
		err := fmt.Errorf("call of node %d: %s: %s", owner, resp.Status, b)
		if bytes.Contains(b, []byte(`"draining"`)) {
			err = errors.Join(errDraining, err)
		}
		return nil, err
	}
	return &stream{f: f, run: resp.Header.Get("X-Buffer-Run-Id"), answer: resp.Body}, nil
}

// status is the run as a node has it.
func (s *stream) status(ctx context.Context, node int) (run wire.Run, err error) {
	resp, err := do(ctx, http.MethodGet, s.f.node(node).url+"/runs/"+s.run, "")
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
// lost. It begins at node; a caller who has stayed begins with his own answer.
func (s *stream) read(ctx context.Context, node int) (run wire.Run, err error) {
	if s.answer != nil {
		whole, err := s.stay()
		if err != nil {
			return run, err
		}
		s.cut.Store(!whole)
	}
	err = eventually(ctx, func() error {
		defer func() { node = s.f.next(node) }()
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
	resp, err := do(ctx, http.MethodGet, fmt.Sprintf("%s/runs/%s/resume?from=%d", s.f.node(node).url, s.run, next.Load()), "")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		return 0, fmt.Errorf("resume on node %d: %s", node, resp.Status)
	}
	n, _, err = s.take(resp.Body, next)
	return n, err
}

// stay reads the call's own answer, and reports whether it came to its end.
func (s *stream) stay() (whole bool, err error) {
	defer s.answer.Close()
	_, whole, err = s.take(s.answer, &s.next)
	return whole, err
}

// take reads numbered events as far as they come: n of them, and whether the one behind the last came too.
// Why they come no further is for the run's status to say.
func (s *stream) take(from io.Reader, next *atomic.Int64) (n int64, whole bool, err error) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		text, numbered := strings.CutPrefix(lines.Text(), `data: {"i":"`)
		if !numbered {
			whole = whole || lines.Text() == "data: [DONE]"
			continue
		}
		digits, _, _ := strings.Cut(text, `"`)
		i, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return n, false, err
		}
		if i != next.Load() {
			s.wrong.Add(1)
			return n, false, fmt.Errorf("run %s: event %d where %d should be", s.run, i, next.Load())
		}
		next.Add(1)
		n++
	}
	return n, whole, nil
}

// tally is what became of some streams.
type tally struct {
	acknowledged, lost, wrong   int64
	completed, interrupted, cut int
	calls, failed               int // of those that were made meanwhile
}

func (t tally) plus(o tally) tally {
	return tally{
		t.acknowledged + o.acknowledged, t.lost + o.lost, t.wrong + o.wrong,
		t.completed + o.completed, t.interrupted + o.interrupted, t.cut + o.cut,
		t.calls + o.calls, t.failed + o.failed,
	}
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
		if s.cut.Load() {
			t.cut++
		}
		if run.State == "completed" {
			t.completed++
		} else {
			t.interrupted++
		}
	}
	return t, nil
}
