package rig

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/spool-dev/spool/api"
)

// document is the OpenAPI document's router, read once.
var document = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	doc.Servers = nil // any host
	return gorillamux.NewRouter(doc)
})

// checker is a transport that holds every response against the document.
type checker struct {
	t    testing.TB
	next http.RoundTripper
}

func checked(t testing.TB, next http.RoundTripper) http.RoundTripper {
	if _, err := document(); err != nil {
		t.Fatal("openapi.yaml:", err)
	}
	return &checker{t: t, next: next}
}

// RoundTrip implements http.RoundTripper. Streams are checked by status and headers, JSON by its
// schema too.
func (c *checker) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	router, _ := document() // was read by checked
	route, params, err := router.FindRoute(req)
	if err != nil {
		c.t.Errorf("%s %s is not in openapi.yaml: %v", req.Method, req.URL.Path, err)
		return resp, nil
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 resp.StatusCode, Header: resp.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true},
	}
	if strings.HasSuffix(mediaType(resp), "json") && native(req) {
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(b), errReader{err}))
		if err == nil {
			input.Options.ExcludeResponseBody = false
			input.SetBodyBytes(b)
		}
	}
	if err := openapi3filter.ValidateResponse(req.Context(), input); err != nil {
		c.t.Errorf("%s %s: the response is not as openapi.yaml says: %v", req.Method, req.URL.Path, err)
	}
	return resp, nil
}

func mediaType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return t
}

// native reports whether the body is the buffer's own and not a provider's.
func native(req *http.Request) bool {
	return strings.HasPrefix(req.URL.Path, "/runs") && !strings.HasSuffix(req.URL.Path, "/resume")
}

// errReader ends a body as the real one ended.
type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) {
	if e.err == nil {
		return 0, io.EOF
	}
	return 0, e.err
}
