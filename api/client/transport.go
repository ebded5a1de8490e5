package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spool-dev/spool/api/wire"
)

// Transport is an http.RoundTripper for SDKs whose base URL is a Spool's. It touches their generation
// calls alone: POST requests below BaseURL whose path is one of docs/providers.md, section 1. All
// else passes.
//
// Each such call has an idempotency key: the request's own Idempotency-Key, or that of WithKey, or
// what Key says, or its X-Buffer-Run-Id, or one by chance, which an SDK's own retries keep.
//
// A cut connection is repaired by byte offset; docs/clients.md says how an answer ends. Cancelling the
// request's context, or closing the body, is no cut: it leaves the run to the run's own policy
// (X-Buffer-On-Disconnect). Under the policy cancel a cut ends the run as leaving does;
// cancel-after=30s leaves the time for a repair.
//
// A Transport is safe for concurrent use, and must not be copied after its first.
type Transport struct {
	BaseURL   string                         // of Spool, without a provider: http://127.0.0.1:8787
	Base      http.RoundTripper              // makes the requests; default http.DefaultTransport
	Key       func(req *http.Request) string // the call's key; nil or empty draws one
	Generates func(req *http.Request) bool   // more POST requests that generate, of providers configured so; nil for none
	Patience  Patience                       // how long a call is repaired

	repeats repeats
}

// RoundTrip implements http.RoundTripper. Its errors for a call are *GiveUpError, *InterruptedError
// where the run failed while its connection was cut, and the context's own.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base, err := parseBase(t.BaseURL)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if !t.isCall(base, req) {
		return t.base().RoundTrip(req)
	}
	body, err := readBody(req)
	if err != nil {
		return nil, fmt.Errorf("spool: read the request's body: %w", err)
	}
	n, drawnFor, err := t.nameOf(req, body)
	if err != nil {
		return nil, err
	}
	resp, err := t.newCall(base, req, body, n).answer()
	if drawnFor != nil && req.Context().Err() == nil && (err != nil || resp.StatusCode >= 400) {
		t.repeats.note(req, *drawnFor, n)
	}
	return resp, err
}

// nameOf names the call: as its program did, or as the try that it repeats was named, or anew. Where
// the program did not, it returns what an SDK's next try is known by.
func (t *Transport) nameOf(req *http.Request, body []byte) (name, *digest, error) {
	if n, ok := t.chosen(req); ok {
		return n, nil, nil
	}
	d := digestOf(req, body)
	if n, ok := t.repeats.claim(req, d); ok {
		return n, &d, nil
	}
	n, err := drawn()
	return n, &d, err
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

// newCall copies the request, which stays as it is, and steers the copy. It has no GetBody: net/http
// would send a request with a key again by itself.
func (t *Transport) newCall(base *url.URL, req *http.Request, body []byte, n name) *call {
	sent := req.Clone(req.Context())
	sent.GetBody = nil
	sent.ContentLength = int64(len(body))
	sent.Header.Set(wire.HeaderKey, n.key)
	sent.Header.Set(wire.HeaderHeartbeat, "off") // an offset counts the run's own bytes
	sent.Header.Set("Accept-Encoding", "identity")
	if n.run != "" {
		sent.Header.Set(wire.HeaderRunID, n.run)
	}
	l := link{base: base, header: credentials(req), do: t.base().RoundTrip}
	return &call{original: req, request: sent, body: body, name: n, link: l, send: t.base().RoundTrip,
		trouble: trouble{patience: t.Patience.withDefaults()}}
}

// credentialHeaders are where a caller shows who it is: docs/protocol.md, section 5.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", wire.HeaderBufferKey}

// credentials are the request's own, for routes that take none from the URL.
func credentials(req *http.Request) http.Header {
	out := http.Header{}
	for _, name := range credentialHeaders {
		if values := req.Header[name]; len(values) > 0 {
			out[name] = values
		}
	}
	if key := req.URL.Query().Get("key"); key != "" && len(out) == 0 {
		out.Set("X-Goog-Api-Key", key)
	}
	return out
}

// readBody reads the request's body, which may have to be sent again, and closes it.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	var b bytes.Buffer
	_, err := io.Copy(&b, req.Body)
	return b.Bytes(), errors.Join(err, req.Body.Close())
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the request has failed already
	}
}
