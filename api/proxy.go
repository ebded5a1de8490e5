package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gorilla/mux"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

const maxModel = 2048 // bytes of a model's name, as long as an ARN may be

// proxied is a request on a provider route, understood.
type proxied struct {
	route   provider.Route
	dialect provider.Dialect
	target  *url.URL // on the provider
	caller  string
	header  http.Header // as it goes upstream
}

// proxy serves ANY /{provider}/{path...}: a generation call becomes a run, whose log answers it; a
// call about a response that a run holds is answered by that log too; any other passes through. What it takes
// to choose is off the stack while the answer lasts.
func (s *Server) proxy(w http.ResponseWriter, r *http.Request) {
	if serve := s.chosen(w, r); serve != nil {
		serve()
	}
}

// chosen is how a request on a provider route is to be served; nil where it has been.
func (s *Server) chosen(w http.ResponseWriter, r *http.Request) (serve func()) {
	route, ok := s.Providers[mux.Vars(r)["provider"]]
	if !ok {
		return func() { s.noRoute(w, r) }
	}
	rest := strings.TrimPrefix(r.URL.EscapedPath(), "/"+mux.Vars(r)["provider"])
	d, generates := generation(route, r.Method, rest)
	call, again := aboutResponse(r.Method, rest)
	switch {
	case d != "":
	case again:
		d = provider.OpenAIResponses
	default:
		d = spoken(route.Name, r.Header)
	}
	p, err := s.understand(r, route, d, rest)
	if err != nil {
		writeProviderError(w, d, err)
		return nil
	}
	switch {
	case again && s.reattach(w, r, p, call):
		return nil
	case generates:
		return func() { s.generate(w, r, p) }
	}
	return func() { s.passThrough(w, r, p) }
}

// generation says in which dialect a call speaks and whether it generates. What the configuration
// names outranks the path.
func generation(route provider.Route, method, path string) (provider.Dialect, bool) {
	d, ok := provider.Generation(method, path)
	if !ok && route.Generates && method == http.MethodPost {
		d, ok = provider.Generic, true
	}
	if route.Dialect != "" {
		d = route.Dialect
	}
	return d, ok
}

// spoken is the dialect of a call whose path tells none: what the built-in providers speak, or what
// the caller's SDK shows that it speaks. It decides where a key goes and how an error looks.
func spoken(name string, h http.Header) provider.Dialect {
	_, anthropic := h["Anthropic-Version"]
	_, gemini := h["X-Goog-Api-Key"]
	switch {
	case name == "anthropic" || anthropic:
		return provider.Anthropic
	case name == "gemini" || gemini:
		return provider.Gemini
	case name == "bedrock":
		return provider.Bedrock
	case name == "ollama":
		return provider.Ollama
	}
	return ""
}

func (s *Server) understand(r *http.Request, route provider.Route, d provider.Dialect, rest string) (*proxied, error) {
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") || r.URL.Query().Has("X-Amz-Signature") {
		return nil, bad("a request that is signed with SigV4 cannot pass through a proxy; use a Bedrock API key (Authorization: Bearer …)")
	}
	target, err := join(route.BaseURL, rest, r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	p := &proxied{route: route, dialect: d, target: target}
	if p.caller, err = s.Callers.Identify(r, r.URL.Query().Get("key")); err != nil {
		return nil, err
	}
	p.header = provider.Forward(r.Header)
	authorize(p, r.Header)
	return p, nil
}

// join puts an escaped path below a base URL, which it cannot leave: a segment that is or hides a
// dot segment is refused.
func join(base *url.URL, escaped, query string) (*url.URL, error) {
	for segment := range strings.SplitSeq(escaped, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, bad("the path is not well escaped")
		}
		for part := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == "." || part == ".." {
				return nil, bad("the path must not hold . or .. segments")
			}
		}
	}
	u := *base
	raw := strings.TrimSuffix(base.EscapedPath(), "/") + escaped
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return nil, bad("the path is not well escaped")
	}
	u.Path, u.RawPath, u.RawQuery = plain, raw, query
	return &u, nil
}

// generate makes the call a run, or finds the run that it is already, and answers with a tail of
// the log. The answer is never a copy of the provider's socket.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, p *proxied) {
	var a *answer
	var start resume.Start
	var err error
	aside(func() { a, start, err = s.start(w, r, p) })
	if err != nil {
		writeProviderError(w, p.dialect, err)
		return
	}
	a.serve(start) // for as long as the run lasts
}

// aside runs f on a goroutine of its own: starting a run needs a deep stack for a moment, and the caller
// keeps its own for as long as the answer lasts, of which there may be ten thousand. A panic of f is the
// caller's.
func aside(f func()) {
	var panicked any
	var work sync.WaitGroup
	work.Go(func() {
		defer func() { panicked = recover() }()
		f()
	})
	if work.Wait(); panicked != nil {
		panic(panicked)
	}
}

// start starts or finds the call's run, for an answer to tail.
func (s *Server) start(w http.ResponseWriter, r *http.Request, p *proxied) (*answer, resume.Start, error) {
	body, err := readBody(w, r, s.Limits.Body, "limits.body")
	if err != nil {
		return nil, resume.Start{}, err
	}
	call, start, err := s.call(r, p, body)
	if err != nil {
		return nil, resume.Start{}, err
	}
	a := &answer{server: s, w: w, r: r, native: true}
	if a.heartbeat, err = heartbeat(r.Header, s.Limits.Heartbeat); err != nil {
		return nil, resume.Start{}, err
	}
	if a.mint, err = mintTTL(r.Header); err != nil {
		return nil, resume.Start{}, err
	}
	a.run, a.replayed, err = s.Runs.Start(r.Context(), call)
	if err != nil {
		f := *asFault(err)
		if a.run.Caller == p.caller && a.run.ID != zeroID {
			f.run = a.run.ID.String()
		}
		return nil, resume.Start{}, &f
	}
	if !a.replayed { // X-Buffer-From is about a run that the caller has read from
		start = resume.FromPosition(0)
	}
	return a, start, nil
}

// call describes the run that the request becomes.
func (s *Server) call(r *http.Request, p *proxied, body []byte) (buffer.Call, resume.Start, error) {
	run := buffer.Run{
		Caller:   p.caller,
		Method:   r.Method,
		Path:     storedPath(p.target),
		Provider: mux.Vars(r)["provider"],
		Route:    p.route.Name,
		Dialect:  p.dialect,
		Model:    provider.Model(p.dialect, p.target.Path, body),
		Stream:   provider.AsksForStream(p.dialect, p.target.Path, body),
		Kind:     policy.ReadOnly,
		State:    buffer.Idle,
	}
	if len(run.Model) > maxModel {
		return buffer.Call{}, resume.Start{}, bad(fmt.Sprintf("the model's name must be at most %d bytes", maxModel))
	}
	if provider.HostedTools(p.dialect, body) {
		run.Kind = policy.ServerTools
	}
	run.BodyHash = bodyHash(run.Method, run.Provider+run.Path, body)
	if err := steer(r.Header, &run, s.Limits); err != nil {
		return buffer.Call{}, resume.Start{}, err
	}
	start, err := resume.Understand("", resume.Ask{From: said(r.Header[wire.HeaderFrom])})
	if err != nil {
		err = fmt.Errorf("%s: %w", wire.HeaderFrom, err)
	}
	retry := retryOf(r.Header)
	run.Turn = retry.Turn
	send := provider.Send{Method: r.Method, URL: p.target, Header: p.header, Body: body}
	return buffer.Call{Run: run, Request: idOf(r).text, Retry: retry, Route: p.route, Send: send}, start, err
}

// storedPath is the path and query as called, without the credential that Gemini's clients put there.
func storedPath(u *url.URL) string {
	if query := provider.WithoutKey(u.RawQuery); query != "" {
		return u.EscapedPath() + "?" + query
	}
	return u.EscapedPath()
}

// bodyHash tells two requests apart: method, path and body as sent, not the headers.
func bodyHash(method, path string, body []byte) string {
	h := sha256.New()
	for _, part := range []string{method, "\x00", path, "\x00"} {
		h.Write([]byte(part))
	}
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
