package api

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer/provider"
)

// console is the pages under /ui as the callers of this listener see them: each its own runs.
func (s *Server) console() http.Handler {
	open := len(s.Callers.names) == 0
	return s.whileStaying(s.pages(callerGate{s, sessions{callers: s.Callers, cookie: "spool_ui", open: open}}, nil, ""))
}

// pages are the console's behind a gate.
func (s *Server) pages(gate console.Gate, record *console.Record, base string) http.Handler {
	c := &console.Console{
		Store: s.Store, Pages: s.Pages, Runs: s.Runs, Gate: gate, Record: record, Base: base, Log: s.Log,
		Providers: slices.Sorted(maps.Keys(s.Providers)),
		Price:     func(route string) provider.Price { return s.Providers[route].Price },
		Explain:   explain, Otherwise: http.HandlerFunc(s.noRoute),
	}
	return c.Handler()
}

// explain is an error for a person: its status, and what it says.
func explain(err error) (status int, text string) {
	f := asFault(err)
	return kinds[f.code].status, f.detail
}

// errSignIn asks a browser for a key.
var errSignIn = &fault{code: wire.CodeUnauthorized, detail: "Sign in with the key that your agents send, to see their runs."}

// callerGate lets callers see their own runs, and a run token its one run.
type callerGate struct {
	server   *Server
	sessions sessions
}

// See implements console.Gate. A caller that sends no credential sees nothing, even where it may call:
// it would see what all others do that send none.
func (g callerGate) See(r *http.Request) (console.Viewer, error) {
	if r.URL.Query().Has("token") {
		return g.bearer(r)
	}
	if caller, ok := g.sessions.read(r, time.Now()); ok {
		return console.Viewer{Name: named(g.sessions, caller), Caller: caller, Out: true}, nil
	}
	if !hasCredential(r) {
		return console.Viewer{}, errSignIn
	}
	caller, err := g.server.Callers.Identify(r, "")
	switch {
	case err != nil:
		return console.Viewer{}, err
	case caller == anonymous:
		return console.Viewer{}, errSignIn
	}
	return console.Viewer{Name: named(g.sessions, caller), Caller: caller}, nil
}

// named is what a page calls a caller, who may be a hash.
func named(s sessions, caller string) string {
	if s.open {
		return "your runs"
	}
	return caller
}

// bearer is who holds a run token.
func (g callerGate) bearer(r *http.Request) (console.Viewer, error) {
	who, err := g.server.reader(r)
	if err != nil {
		return console.Viewer{}, err
	}
	if len(who.grants) != 1 {
		return console.Viewer{}, errGrant
	}
	grant := who.grants[0]
	return console.Viewer{Name: "one run", Run: grant.Run, From: grant.From, Token: r.URL.Query().Get("token")}, nil
}

// SignIn implements console.Gate.
func (g callerGate) SignIn(w http.ResponseWriter, r *http.Request, key string) error {
	return g.sessions.begin(w, r, key)
}

// SignOut implements console.Gate.
func (g callerGate) SignOut(w http.ResponseWriter, r *http.Request) { g.sessions.end(w, r) }
