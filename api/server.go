// Package api is the service's edge: routes, the provider proxy, the stream handlers, one table of
// errors. It maps what the packages below say to HTTP, and nothing of HTTP goes down.
package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// Limits bound what one request may ask for. Zero values are the documented defaults.
type Limits struct {
	Body      int64         // bytes of a call's body; default 64 MiB
	BodyTime  time.Duration // how long a request's body may take to come; default 5 min
	BodyGap   time.Duration // between two reads of the body of a call that passes through, which may take longer; default 1 min
	TTL       time.Duration // how long chunks are kept where the call does not say; default 1 h
	MaxTTL    time.Duration // the longest that a call may say; default 24 h
	Hold      time.Duration // how long headers wait for the first content; default 30 s
	Heartbeat time.Duration // between two signs of life on a quiet connection; default 15 s
	Write     time.Duration // how long one write to a reader may take; default 60 s
}

func (l Limits) withDefaults() Limits {
	set := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	if l.Body <= 0 {
		l.Body = 64 << 20
	}
	set(&l.BodyTime, 5*time.Minute)
	set(&l.BodyGap, time.Minute)
	set(&l.TTL, time.Hour)
	set(&l.MaxTTL, 24*time.Hour)
	l.MaxTTL = max(l.MaxTTL, l.TTL)
	set(&l.Hold, 30*time.Second)
	set(&l.Heartbeat, 15*time.Second)
	set(&l.Write, time.Minute)
	return l
}

// Server answers the HTTP contract over a store and its runs.
type Server struct {
	Store     buffer.Store
	Ready     func() error // why the log takes nothing now; nil is always ready
	Runs      *buffer.Runs
	Client    *provider.Client
	Callers   *Callers
	Tokens    *resume.Tokens
	Origins   []string                  // whose pages may read answers; none may where it is empty
	Providers map[string]provider.Route // by the first path segment
	Limits    Limits
	// Cloudflare serves the routes of Cloudflare's resume client, on which an unguessable run id is
	// a credential of its own. For loopback listeners.
	Cloudflare bool
	Metrics    http.Handler // nil serves none
	Pages      *Pages       // which all readers share; nil is of the default size
	// Leaving ends when another process has taken the listener over: readers are sent there. nil never does.
	Leaving context.Context
	Log     *zap.Logger

	draining atomic.Bool
}

// defaultPages is the room for large events on their way to readers, in bytes.
const defaultPages = 512 << 20

// Pages is room for large events on their way to readers, which several servers of one log can share.
type Pages = resume.Pages

// NewPages has room for so many bytes.
func NewPages(bytes int64) *Pages { return resume.NewPages(bytes) }

// reserved are the first path segments that no provider may have as its name.
var reserved = []string{"runs", "resume", "events", "streams", "ai-gateway", "ui", "healthz", "readyz", "metrics"}

// Reserved lists the names that no provider may have.
func Reserved() []string { return append([]string(nil), reserved...) }

// Handler returns the routes. They are matched against the path as it came: an escaped slash stays
// one segment, and nothing is redirected.
func (s *Server) Handler() http.Handler {
	s.Limits = s.Limits.withDefaults()
	if s.Pages == nil {
		s.Pages = NewPages(defaultPages)
	}
	ui := s.console()
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	r.HandleFunc("/healthz", s.health).Methods("GET", "HEAD")
	r.HandleFunc("/readyz", s.ready).Methods("GET", "HEAD")
	if s.Metrics != nil {
		r.Handle("/metrics", s.Metrics).Methods("GET", "HEAD")
	}

	r.HandleFunc("/runs", s.native(s.list, "state", "tag", "key", "limit", "after")).Methods("GET", "HEAD")
	r.HandleFunc("/runs/{run}", s.reads(s.status)).Methods("GET", "HEAD")
	r.HandleFunc("/runs/{run}/resume", s.reads(s.resumeRun, byteQuery...)).Methods("GET", "HEAD")
	r.HandleFunc("/runs/{run}/events", s.reads(s.eventsRun, eventQuery...)).Methods("GET", "HEAD")
	r.HandleFunc("/runs/{run}/stream", s.reads(s.streamRun, "resume")).Methods("GET", "HEAD")
	r.HandleFunc("/runs/{run}/token", s.native(s.mintToken)).Methods("POST")
	r.HandleFunc("/runs/{run}/cancel", s.native(s.cancel)).Methods("POST")
	r.HandleFunc("/runs/{run}/ack", s.native(s.ack)).Methods("POST")
	r.HandleFunc("/resume", s.reads(s.resumeAny, slices.Concat([]string{"run", "key"}, byteQuery)...)).Methods("GET", "HEAD")
	r.HandleFunc("/events", s.reads(s.eventsMany, "run", "follow")).Methods("GET", "HEAD")
	r.Handle("/ui", ui).Methods("GET", "HEAD")
	r.Handle("/ui/{page:.*}", ui).Methods("GET", "HEAD", "POST")
	if s.Cloudflare {
		r.HandleFunc("/ai-gateway/gateways/{gateway}/run/{run}/resume", s.cloudflareResume).Methods("GET", "HEAD")
	}

	none := s.otherwise(r)
	for _, name := range reserved {
		r.PathPrefix("/" + name + "/").HandlerFunc(none)
		r.Path("/" + name).HandlerFunc(none)
	}
	r.PathPrefix("/{provider}/").HandlerFunc(s.proxy)
	r.NotFoundHandler = none
	return s.guard(s.cors(r))
}

// guard is around every request, those without a route too: it logs what is asked, never what with.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		r = identify(w, r)
		defer func() {
			run := zap.Skip()
			if id := w.Header().Get(wire.HeaderRunID); id != "" {
				run = zap.String("run", id)
			}
			s.logOf(r).Debug("request", zap.String("method", r.Method), zap.String("path", r.URL.Path), run, zap.Duration("took", time.Since(begun)))
		}()
		s.listen(w, r)
		s.passOn(w)
		next.ServeHTTP(w, r)
	})
}

// Drain makes the server say that it is not ready. What runs is still served.
func (s *Server) Drain() { s.draining.Store(true) }

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // a probe that has left hears nothing
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		writeProblem(w, buffer.ErrDraining)
		return
	}
	if !s.Runs.Writable() {
		writeProblem(w, buffer.ErrStorage)
		return
	}
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			writeProblem(w, err)
			return
		}
	}
	for _, err := range s.Store.List(r.Context(), buffer.Filter{Limit: 1}) {
		if err != nil {
			s.logOf(r).Error("storage is not ready", zap.Error(err))
			writeProblem(w, err)
			return
		}
	}
	s.health(w, r)
}

// methods are those with which the buffer has a route of its own for the request's path. The routes that
// take what is left over name no method.
func methods(routes *mux.Router, r *http.Request) (allowed []string) {
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		with := *r
		with.Method = m
		var match mux.RouteMatch
		if !routes.Match(&with, &match) || match.Route == nil {
			continue
		}
		if _, err := match.Route.GetMethods(); err == nil {
			allowed = append(allowed, m)
		}
	}
	return allowed
}

// otherwise refuses what no route serves: a path that there is not, or a method that it does not take. It
// does not look at who asks.
func (s *Server) otherwise(routes *mux.Router) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allowed := strings.Join(methods(routes, r), ", ")
		if allowed == "" {
			s.noRoute(w, r)
			return
		}
		w.Header().Set("Allow", allowed)
		writeProblem(w, &fault{code: wire.CodeBadMethod, detail: r.Method + " is not for " + r.URL.Path + "; allowed: " + allowed})
	}
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, &fault{code: wire.CodeNotFound, detail: "no such route: " + r.Method + " " + r.URL.Path})
}
