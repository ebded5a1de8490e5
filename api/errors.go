package api

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// fault is an error on its way to a client: a code of the contract and what to do about it.
type fault struct {
	code   string
	detail string
	run    string        // the run it is about, where the caller may know of it
	next   int64         // the run's head, for ahead
	after  time.Duration // when to come again; 0 is the code's own
}

func (f *fault) Error() string { return f.code + ": " + f.detail }

func bad(detail string) *fault { return &fault{code: wire.CodeBadRequest, detail: detail} }

// kinds is the one table from codes to statuses.
var kinds = map[string]struct {
	status     int
	title      string
	openAIType string
	retryAfter int // seconds; 0 sends none
	noRetry    bool
}{
	wire.CodeBadRequest:      {status: 400, title: "Bad request", openAIType: "invalid_request_error"},
	wire.CodeBadPosition:     {status: 400, title: "Bad position", openAIType: "invalid_request_error"},
	wire.CodeBadKey:          {status: 400, title: "Bad idempotency key", openAIType: "invalid_request_error"},
	wire.CodeUnauthorized:    {status: 401, title: "Unauthorized", openAIType: "authentication_error"},
	wire.CodeBadMethod:       {status: 405, title: "Method not allowed", openAIType: "invalid_request_error"},
	wire.CodeSlowBody:        {status: 408, title: "Slow body", openAIType: "invalid_request_error"},
	wire.CodeNotFound:        {status: 404, title: "Not found", openAIType: "not_found_error"},
	wire.CodeStillRunning:    {status: 409, title: "Still running", openAIType: "conflict_error", noRetry: true},
	wire.CodeIDTaken:         {status: 409, title: "Run id is taken", openAIType: "conflict_error", noRetry: true},
	wire.CodeReleased:        {status: 410, title: "Released", openAIType: "invalid_request_error"},
	wire.CodeTooLarge:        {status: 413, title: "Too large", openAIType: "invalid_request_error"},
	wire.CodeAhead:           {status: 416, title: "Ahead of the run", openAIType: "invalid_request_error"},
	wire.CodeKeyReused:       {status: 422, title: "Key was used for another request", openAIType: "invalid_request_error"},
	wire.CodeBusy:            {status: 429, title: "Busy", openAIType: "rate_limit_error", retryAfter: 1},
	wire.CodeUpstreamFailed:  {status: 502, title: "Provider failed", openAIType: "api_error"},
	wire.CodeDraining:        {status: 503, title: "Draining", openAIType: "api_error", retryAfter: 2},
	wire.CodeStorage:         {status: 503, title: "Storage unavailable", openAIType: "api_error", retryAfter: 2},
	wire.CodeUpstreamTimeout: {status: 504, title: "Provider timed out", openAIType: "api_error"},
}

// asFault finds the contract's code for an error of the packages below. What none of them names is
// storage: everything else that can go wrong between a request and its answer has a name.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if a, ok := errors.AsType[*resume.AheadError](err); ok {
		return &fault{code: wire.CodeAhead, detail: a.Error(), next: a.Next}
	}
	if b, ok := errors.AsType[*buffer.BusyError](err); ok {
		return &fault{code: wire.CodeBusy, detail: b.What, after: b.After}
	}
	for _, row := range []struct {
		is     error
		code   string
		detail string
	}{
		{resume.ErrBadPosition, wire.CodeBadPosition, err.Error()},
		{buffer.ErrNotFound, wire.CodeNotFound, "no such run"},
		{buffer.ErrReleased, wire.CodeReleased, "the run's chunks are released"},
		{buffer.ErrLive, wire.CodeStillRunning, "the run has not ended; cancel it or wait"},
		{buffer.ErrIDTaken, wire.CodeIDTaken, "the run id is taken; choose another"},
		{buffer.ErrKeyReused, wire.CodeKeyReused, "the key was used for another method, path or body; use a new key for a new request"},
		{buffer.ErrDraining, wire.CodeDraining, "the buffer is going down; new runs go elsewhere"},
	} {
		if errors.Is(err, row.is) {
			return &fault{code: row.code, detail: row.detail}
		}
	}
	return &fault{code: wire.CodeStorage, detail: "the log cannot be used now"}
}

// refuse answers a native route with an error. Where the client has left, an error that is not the
// request's own may say no more than that; then the connection is cut, since a client that has only
// finished speaking would take an empty answer for a good one.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if _, own := errors.AsType[*fault](err); !own && r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	writeProblem(w, err)
}

// writeProblem answers a native route with an error.
func writeProblem(w http.ResponseWriter, err error) {
	f := asFault(err)
	k := kinds[f.code]
	faultHeaders(w.Header(), f)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(k.status)
	_ = json.NewEncoder(w).Encode(wire.Problem{ // a client that has left hears nothing
		Type: "about:blank", Title: k.title, Status: k.status, Detail: f.detail, Code: f.code, Run: f.run,
	})
}

// writeProviderError answers a provider route with an error in the dialect that the caller's SDK
// knows, so that it raises its usual type.
func writeProviderError(w http.ResponseWriter, d provider.Dialect, err error) {
	f := asFault(err)
	k := kinds[f.code]
	faultHeaders(w.Header(), f)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(k.status)
	_, _ = w.Write(provider.ErrorBody(d, provider.Error{ // as above
		Status: k.status, Type: errorType(d, k.openAIType), Code: f.code, Message: "spool: " + f.detail,
	}))
}

// errorType is our word for an error in the dialects whose SDKs read OpenAI's words; the others have
// their own for each status.
func errorType(d provider.Dialect, openAI string) string {
	switch d {
	case provider.Anthropic, provider.Gemini, provider.Bedrock, provider.BedrockInvoke, provider.Ollama:
		return ""
	}
	return openAI
}

// retryAfter is in seconds: what was asked for, or something that spreads the callers over a few.
func retryAfter(after time.Duration, least int) string {
	if after > 0 {
		return strconv.Itoa(int(math.Ceil(after.Seconds())))
	}
	return strconv.Itoa(least + rand.N(2*least+1))
}

func faultHeaders(h http.Header, f *fault) {
	k := kinds[f.code]
	h.Set("Cache-Control", "no-store")
	if f.run != "" {
		h.Set(wire.HeaderRunID, f.run)
	}
	if f.code == wire.CodeAhead {
		h.Set(wire.HeaderNext, strconv.FormatInt(f.next, 10))
	}
	if k.retryAfter > 0 {
		h.Set("Retry-After", retryAfter(f.after, k.retryAfter))
	}
	if k.noRetry {
		h.Set("X-Should-Retry", "false")
	}
}
