package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// maxRetrieveBody bounds the body of a GET, in which one SDK asks for a stream.
const maxRetrieveBody = 64 << 10

// responseCall is a call about a response that exists: OpenAI's background protocol.
type responseCall struct {
	id     string // the provider's own id of the response
	cancel bool   // else it is to be retrieved
}

// aboutResponse finds such a call: GET …/responses/{id} and POST …/responses/{id}/cancel, whatever
// stands before.
func aboutResponse(method, path string) (call responseCall, ok bool) {
	path = strings.TrimSuffix(path, "/")
	switch method {
	case http.MethodGet:
	case http.MethodPost:
		if path, call.cancel = strings.CutSuffix(path, "/cancel"); !call.cancel {
			return call, false
		}
	default:
		return call, false
	}
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || !strings.HasSuffix(path[:slash], "/responses") {
		return call, false
	}
	id, err := url.PathUnescape(path[slash+1:])
	call.id = id
	return call, err == nil && id != ""
}

// reattach serves a call about a response from the run that holds it. It reports false where the call
// is to be forwarded: the caller has no such run, or the provider knows more than the run does.
func (s *Server) reattach(w http.ResponseWriter, r *http.Request, p *proxied, call responseCall) bool {
	run, err := s.runOfResponse(r.Context(), p.caller, mux.Vars(r)["provider"], call.id)
	if errors.Is(err, buffer.ErrNotFound) {
		return false
	}
	if err == nil {
		defer s.Runs.Attach(r.Context(), run.ID, true)()
		var served bool
		if served, err = s.respond(w, r, p, run, call); err == nil {
			return served
		}
	}
	if r.Context().Err() == nil {
		writeProviderError(w, provider.OpenAIResponses, about(run, err))
	}
	return true
}

// runOfResponse is the caller's newest run that holds the response. An unknown response and
// another's are one case, by the same lookup.
func (s *Server) runOfResponse(ctx context.Context, caller, name, id string) (buffer.Run, error) {
	for run, err := range s.Store.List(ctx, buffer.Filter{Caller: caller, ProviderID: id}) {
		if err != nil {
			return buffer.Run{}, err
		}
		if run.Provider == name && run.Dialect == provider.OpenAIResponses {
			return run, nil
		}
	}
	return buffer.Run{}, buffer.ErrNotFound
}

// respond answers the call, or reports that it is to be forwarded.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, p *proxied, run buffer.Run, call responseCall) (served bool, err error) {
	if run.State == buffer.Released {
		return false, buffer.ErrReleased
	}
	a := &answer{server: s, w: w, r: r, run: run, native: true, replayed: true}
	var want retrieval
	if call.cancel {
		_, err = s.Runs.Cancel(r.Context(), run.ID)
	} else if want, err = askedOf(w, r); err == nil {
		a.heartbeat, err = heartbeat(r.Header, s.Limits.Heartbeat)
	}
	if err != nil {
		return false, err
	}
	run, object, err := s.lastObject(r.Context(), run)
	if err != nil {
		return false, err
	}
	switch {
	case elsewhere(run, object) && run.Outcome == buffer.Completed: // all that the run was told is that it has begun
		return false, nil
	case elsewhere(run, object) && s.offer(w, r, p):
	case run.Outcome == buffer.Failed:
		a.serve(resume.FromPosition(0))
	case want.stream && run.Framing == frame.Whole:
		return false, bad("the response was not made as a stream; retrieve it without one")
	case want.stream:
		a.serve(want.start)
	case object == nil:
		return false, nil
	default:
		give, ok := s.Pages.Hold(len(object))
		if !ok {
			return false, &buffer.BusyError{What: "over limits.pages: large answers on their way to readers take too much memory", After: time.Second + rand.N(time.Second)}
		}
		defer give()
		s.writeResponse(w, r, run, asItStands(run, object))
	}
	return true, nil
}

// elsewhere reports whether the response goes on at its provider though the run has ended.
func elsewhere(run buffer.Run, object []byte) bool {
	pending, background := provider.ResponsePending(object)
	return run.State.Ended() && pending && background
}

// retrieval is what a GET of a response asks for.
type retrieval struct {
	stream bool
	start  resume.Start
}

// askedOf reads stream and a position off the query and, where that has none, off a JSON body, which
// stays there to be forwarded.
func askedOf(w http.ResponseWriter, r *http.Request) (retrieval, error) {
	body, err := readBody(w, r, maxRetrieveBody, "what a retrieval may have")
	if err != nil {
		return retrieval{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	given := ask(r)
	if v := gjson.GetBytes(body, "starting_after"); !given.StartingAfter.Given && v.Type != gjson.Null {
		given.StartingAfter = resume.Given(v.String())
	}
	stream := first(r.URL.Query().Get("stream"), gjson.GetBytes(body, "stream").String())
	var want retrieval
	if stream != "" {
		if want.stream, err = strconv.ParseBool(stream); err != nil {
			return want, bad("stream must be true or false")
		}
	}
	want.start, err = resume.Understand("", given)
	return want, err
}
