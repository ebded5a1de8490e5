package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// errLeft ends the tails of readers who come back by themselves, when another process has taken the listener
// over: they find it at the same address. Answers on a provider's route stay to their end, since an SDK would
// take a cut for a failure; the process does as well.
var errLeft = errors.New("another process has taken over")

// soonRetry is the most that a page waits before it comes back to the process that has taken over, which is
// there already.
const soonRetry = 250 * time.Millisecond

// staying is ctx for as long as the server stays at its listener; then its cause is errLeft.
func (s *Server) staying(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.Leaving == nil {
		return ctx, func() { cancel(nil) }
	}
	stop := context.AfterFunc(s.Leaving, func() { cancel(errLeft) })
	return ctx, func() { stop(); cancel(nil) }
}

func (s *Server) left() bool { return s.Leaving != nil && s.Leaving.Err() != nil }

// passOn has a client that comes once more on a connection of before come on a new one next time, which the
// other process gets.
func (s *Server) passOn(w http.ResponseWriter) {
	if s.left() {
		w.Header().Set("Connection", "close")
	}
}

// whileStaying ends h's requests when the server leaves.
func (s *Server) whileStaying(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := s.staying(r.Context())
		defer stop()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// goodbye tells a page, where it is the server that goes, how soon to come back. The end is a clean one.
func (e *eventStream) goodbye(ctx context.Context) {
	if !errors.Is(context.Cause(ctx), errLeft) {
		return
	}
	e.blocks.wait(1 + int(rand.N(soonRetry).Milliseconds()))
	if e.blocks.send() {
		e.out.flush()
	}
}
