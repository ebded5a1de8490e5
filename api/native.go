package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/mux"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/resume"
)

// nativeHandler serves a route of the buffer's own for a caller that is known.
type nativeHandler func(w http.ResponseWriter, r *http.Request, caller string) error

// native identifies the caller and maps the handler's error to the contract. query names the
// parameters that the route knows.
func (s *Server) native(h nativeHandler, query ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.Callers.Identify(r, "")
		if err == nil {
			err = wellFormed(r)
		}
		if err == nil {
			err = knows(r, query)
		}
		if err == nil {
			err = h(w, r, caller)
		}
		if err != nil {
			refuse(w, r, err)
		}
	}
}

// owned returns the run that the text names, without its ledger, if it is the caller's. An unknown
// run and another's are one case: the same lookup, the same answer.
func (s *Server) owned(ctx context.Context, caller, text string) (buffer.Run, error) {
	id, err := ulid.ParseStrict(strings.ToUpper(text))
	if err != nil {
		return buffer.Run{}, buffer.ErrNotFound
	}
	page, err := s.Store.Read(ctx, id, 0, 0) // from memory, where the run is recent
	if err != nil && !errors.Is(err, buffer.ErrReleased) {
		return buffer.Run{}, err
	}
	if page.Run.Caller != caller {
		return buffer.Run{}, buffer.ErrNotFound
	}
	return page.Run, nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, who reader) error {
	run, _, err := s.readable(r.Context(), who, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	if run, err = s.Store.Get(r.Context(), run.ID); err != nil {
		return err
	}
	return s.writeRun(w, run)
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, caller string) error {
	run, err := s.owned(r.Context(), caller, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	if run, err = s.Runs.Cancel(r.Context(), run.ID); err != nil {
		return about(run, err)
	}
	return s.writeRun(w, run)
}

func (s *Server) ack(w http.ResponseWriter, r *http.Request, caller string) error {
	run, err := s.owned(r.Context(), caller, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	id := run.ID
	if run, err = s.Runs.Ack(r.Context(), id); err != nil {
		return about(buffer.Run{ID: id}, err)
	}
	return s.writeRun(w, run)
}

// about names the run in the error's answer.
func about(run buffer.Run, err error) error {
	f := *asFault(err)
	if run.ID != zeroID {
		f.run = run.ID.String()
	}
	return &f
}

func (s *Server) writeRun(w http.ResponseWriter, run buffer.Run) error {
	return writeJSON(w, WireRun(run, s.Runs.Phase(run.ID), s.Runs.Readers(run.ID)))
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a client that has left hears nothing
	return nil
}

const (
	defaultList = 50
	maxList     = 500
)

// list gives the caller's runs, newest first.
func (s *Server) list(w http.ResponseWriter, r *http.Request, caller string) error {
	f, err := filter(r.URL.Query())
	if err != nil {
		return err
	}
	f.Caller = caller
	want := f.Limit
	f.Limit++ // one more tells whether there is a next page
	out := wire.RunList{Runs: []wire.Run{}}
	for run, err := range s.Store.List(r.Context(), f) {
		if err != nil {
			return err
		}
		if len(out.Runs) == want {
			out.Next = out.Runs[want-1].ID
			break
		}
		if run, err = s.Store.Get(r.Context(), run.ID); err != nil {
			continue // forgotten meanwhile
		}
		out.Runs = append(out.Runs, WireRun(run, s.Runs.Phase(run.ID), s.Runs.Readers(run.ID)))
	}
	return writeJSON(w, out)
}

func filter(q url.Values) (buffer.Filter, error) {
	f := buffer.Filter{Limit: defaultList}
	for name := range q {
		v := q.Get(name)
		switch name {
		case "state":
			if f.State = buffer.State(v); !f.State.Known() {
				return f, bad("state must be idle, streaming, completed, interrupted, cancelled, failed or released")
			}
		case "tag":
			var ok bool
			if f.TagName, f.TagValue, ok = strings.Cut(v, "="); !ok || f.TagName == "" {
				return f, bad("tag must be name=value")
			}
		case "key":
			var err error
			if f.Key, err = keyOf(name, q[name]); err != nil {
				return f, err
			}
		case "limit":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > maxList {
				return f, bad(fmt.Sprintf("limit must be a whole number from 1 to %d", maxList))
			}
			f.Limit = n
		case "after":
			id, err := ulid.ParseStrict(v)
			if err != nil {
				return f, bad("after must be a run id")
			}
			f.Before = id
		}
	}
	return f, nil
}

// resumeRun serves /runs/{run}/resume.
func (s *Server) resumeRun(w http.ResponseWriter, r *http.Request, who reader) error {
	run, grant, err := s.readable(r.Context(), who, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	return s.resume(w, r, run, grant)
}

// streamRun serves /runs/{run}/stream for Vercel's useChat, which asks whether an answer is under
// way and wants the whole of it then.
func (s *Server) streamRun(w http.ResponseWriter, r *http.Request, who reader) error {
	run, grant, err := s.readable(r.Context(), who, mux.Vars(r)["run"])
	if err != nil {
		return err
	}
	if !run.State.Live() {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	a := &answer{server: s, w: w, r: r, run: run}
	a.serve(resume.FromPosition(grant.From))
	return nil
}

// resumeAny serves /resume for a reader that kept only its key, or gives the id elsewhere.
func (s *Server) resumeAny(w http.ResponseWriter, r *http.Request, who reader) error {
	q := r.URL.Query()
	if len(q["run"]) > 1 {
		return bad("run must be given once here")
	}
	id := first(q.Get("run"), r.Header.Get(wire.HeaderRunID))
	key, err := keyOf("key", q["key"])
	if !q.Has("key") {
		key, err = idempotencyKey(r.Header)
	}
	if err != nil {
		return err
	}
	switch {
	case id != "":
		run, grant, err := s.readable(r.Context(), who, id)
		if err != nil {
			return err
		}
		if key != "" && run.Key != key {
			return bad("run and key name different runs")
		}
		return s.resume(w, r, run, grant)
	case key != "" && who.grants != nil: // a token is of a run, not of a caller
		return errGrant
	case key != "":
		for run, err := range s.Store.List(r.Context(), buffer.Filter{Caller: who.caller, Key: key, Limit: 1}) {
			if err != nil {
				return err
			}
			return s.resume(w, r, run, resume.Grant{})
		}
		return buffer.ErrNotFound
	}
	return bad("which run? give run or key in the query, or " + wire.HeaderRunID + " or " + wire.HeaderKey + " as a header")
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request, run buffer.Run, grant resume.Grant) error {
	start, err := resume.Understand(run.ID.String(), ask(r))
	if err != nil {
		return about(run, err)
	}
	a := &answer{server: s, w: w, r: r, run: run, partial: start.Partial, floor: grant.From, returns: true}
	a.serve(start.Otherwise(grant.From))
	return nil
}

// wellFormed refuses a query that cannot be read whole: what is dropped from it must not be taken for
// not given.
func wellFormed(r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return &fault{code: wire.CodeBadPosition, detail: "the query is not well escaped"}
	}
	return nil
}

// The query parameters with which a reader says where and how it reads: events, and the bytes alone.
var (
	eventQuery = []string{"from", "from_byte", "starting_after", "follow"}
	byteQuery  = slices.Concat(eventQuery, []string{"wait", "partial"})
)

// repeated are the query parameters that may be given more than once.
var repeated = []string{"run", "token"}

// knows refuses a query with a parameter that is none of the route's, or that says two things: neither
// a slip in its name nor its second value must be taken for not given.
func knows(r *http.Request, query []string) error {
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(query, name) {
			known := first(strings.Join(query, ", "), "none")
			return bad(fmt.Sprintf("query parameter %.64q is not known here; known: %s", name, known))
		}
		if len(q[name]) > 1 && !slices.Contains(repeated, name) {
			f := bad(name + " must be given once")
			if slices.Contains(byteQuery, name) {
				f.code = wire.CodeBadPosition
			}
			return f
		}
	}
	return nil
}

// ask collects what the request says about positions.
func ask(r *http.Request) resume.Ask {
	q := r.URL.Query()
	text := func(name string) resume.Text { return said(q[name]) }
	return resume.Ask{
		From: text("from"), FromByte: text("from_byte"), StartingAfter: text("starting_after"),
		Follow: text("follow"), Wait: text("wait"), Partial: text("partial"),
		LastEventID: said(r.Header["Last-Event-Id"]),
	}
}

// said is what a header or a parameter says. Lines of one name are one list, as RFC 9110 reads them: of
// two positions neither is taken.
func said(values []string) resume.Text {
	return resume.Text{Value: strings.Join(values, ","), Given: len(values) > 0}
}

// cloudflareResume serves npm workers-ai-provider's resume client: what is gone or unknown is 404.
// The unguessable run id is the credential where none is sent.
func (s *Server) cloudflareResume(w http.ResponseWriter, r *http.Request) {
	id, err := ulid.ParseStrict(mux.Vars(r)["run"])
	var run buffer.Run
	if err == nil {
		run, err = s.Store.Get(r.Context(), id)
	}
	if err == nil && hasCredential(r) {
		var caller string
		if caller, err = s.Callers.Identify(r, ""); err == nil && caller != run.Caller {
			err = buffer.ErrNotFound
		}
	}
	if err != nil || run.State == buffer.Released {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"Request not found"}`)) // a client that has left hears nothing
		return
	}
	if err := s.resume(w, r, run, resume.Grant{}); err != nil {
		writeProblem(w, err)
	}
}

func hasCredential(r *http.Request) bool {
	return credential(r) != "" || r.Header.Get(wire.HeaderBufferKey) != ""
}
