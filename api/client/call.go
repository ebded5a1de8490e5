package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spool-dev/spool/api/wire"
)

// call is one call of an SDK, on its way to an answer.
type call struct {
	original *http.Request // the SDK's own
	request  *http.Request // as it is sent
	body     []byte
	name     name
	link     link
	send     func(*http.Request) (*http.Response, error)
	trouble  trouble
}

// answer sends the call and returns its answer, repaired as it is read.
//
// Where the connection is lost before the answer's head, nobody can tell whether the call came. Spool
// is asked by its key: a run that is found is read, and nothing is sent. Only where Spool says that
// there is no such run, the call is sent again, under its key.
func (c *call) answer() (*http.Response, error) {
	ctx := c.original.Context()
	resp, err := c.post()
	for isLost(resp, err) {
		if spent := c.trouble.wait(ctx, failureOf(resp, err)); spent == errSpent {
			break // a refusal is the answer then
		}
		if resp != nil {
			resp.Body.Close()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if resp, err = c.find(ctx); isUnknown(err) {
			resp, err = c.post()
		}
	}
	if err != nil {
		return nil, c.stopped(ctx, err)
	}
	return c.deliver(resp), nil
}

// post sends the call, once.
func (c *call) post() (*http.Response, error) {
	req := *c.request
	req.Body = io.NopCloser(bytes.NewReader(c.body))
	if len(c.body) == 0 {
		req.Body = http.NoBody
	}
	return c.send(&req)
}

// isLost reports whether the call is without an answer that may yet be had: the connection was lost,
// or something has refused it, Spool or what lies before it, without a run.
func isLost(resp *http.Response, err error) bool {
	if err != nil {
		return mayPass(err)
	}
	return resp.Header.Get(wire.HeaderStatus) == "" && passing(resp.StatusCode)
}

// failureOf is a refusal as an error, for how long it asks to wait.
func failureOf(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	return &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp)}
}

// find looks for the run by the call's key and opens it where the answer was to begin.
func (c *call) find(ctx context.Context) (*http.Response, error) {
	place := url.Values{"from_byte": {"0"}}
	if from := c.request.Header.Get(wire.HeaderFrom); from != "" {
		place = url.Values{"from": {from}}
	}
	resp, err := c.link.request(ctx, http.MethodGet, place, http.Header{wire.HeaderKey: {c.name.key}}, "resume")
	if err != nil || resp.Header.Get(wire.HeaderStatus) != "failed" {
		return resp, err
	}
	return c.refused(ctx, resp)
}

// refused gives the answer of a run that failed the status that its provider gave, which the route
// of its call has and /resume has not.
func (c *call) refused(ctx context.Context, resp *http.Response) (*http.Response, error) {
	run, err := c.link.run(ctx, http.MethodGet, resp.Header.Get(wire.HeaderRunID))
	if err == nil && run.Status == 0 {
		err = &InterruptedError{Run: run.ID, State: run.State, Reason: run.Reason}
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	resp.StatusCode, resp.Status = run.Status, fmt.Sprintf("%d %s", run.Status, http.StatusText(run.Status))
	return resp, nil
}

// deliver gives the answer of a run a body that repairs itself. Any other answer stays as it is.
func (c *call) deliver(resp *http.Response) *http.Response {
	resp.Request = c.original
	isRun := resp.Header.Get(wire.HeaderStatus) != "" && resp.Header.Get(wire.HeaderRunID) != ""
	if !isRun || resp.Header.Get("Content-Encoding") != "" {
		return resp
	}
	s := newStream(c.original.Context(), c.link, c.trouble.patience)
	s.key, s.caller = c.name.key, true
	s.begin(resp)
	resp.Body = s
	return resp
}

// stopped is the error for a call that got no answer.
func (c *call) stopped(ctx context.Context, err error) error {
	s := &Stream{Run: c.name.run, key: c.name.key, call: ctx, trouble: c.trouble}
	return s.stopped(err)
}
