package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
)

// link asks the buffer's own routes as one caller. A request is tried once.
type link struct {
	base   *url.URL
	header http.Header // with which the caller shows who it is
	do     func(*http.Request) (*http.Response, error)
}

// parseBase reads a base URL, which must name a host.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil {
		return nil, fmt.Errorf("spool: base URL: %w", err)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("spool: base URL %q names no host", text)
	}
	return u, nil
}

// request asks a route. What is not a success is an *Error.
func (l link) request(ctx context.Context, method string, query url.Values, header http.Header, path ...string) (*http.Response, error) {
	return l.send(ctx, method, query, header, nil, path...)
}

// send is request with a body.
func (l link) send(ctx context.Context, method string, query url.Values, header http.Header, body io.Reader, path ...string) (*http.Response, error) {
	u := l.base.JoinPath(path...)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, h := range []http.Header{l.header, header} {
		maps.Copy(req.Header, h)
	}
	req.Header.Set("Accept-Encoding", "identity") // an offset counts the run's own bytes
	resp, err := l.do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, problem(resp)
	}
	return resp, nil
}

// json asks a route and reads its answer into v.
func (l link) json(ctx context.Context, method string, query url.Values, v any, path ...string) error {
	resp, err := l.request(ctx, method, query, nil, path...)
	if err != nil {
		return err
	}
	return decode(resp, v)
}

// decode reads an answer into v, and closes it.
func decode(resp *http.Response, v any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return fmt.Errorf("spool: %s %s: %w", resp.Request.Method, resp.Request.URL.Path, err)
	}
	return nil
}

// named refuses what can be no run's id.
func named(id string) error {
	if _, err := ulid.ParseStrict(id); err != nil {
		return fmt.Errorf("spool: run id %q: must be a ULID, of 26 letters and digits", id)
	}
	return nil
}

// run asks about a run, or acts on it, and returns it.
func (l link) run(ctx context.Context, method, id string, action ...string) (wire.Run, error) {
	var run wire.Run
	if err := named(id); err != nil {
		return run, err
	}
	err := l.json(ctx, method, nil, &run, append([]string{"runs", id}, action...)...)
	return run, err
}

// resume opens a run at a place, which is one of the contract's queries.
func (l link) resume(ctx context.Context, id string, place url.Values) (*http.Response, error) {
	return l.request(ctx, http.MethodGet, place, nil, "runs", id, "resume")
}
