package api

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.uber.org/zap"
)

// headerRequestID is where a request's id comes from and, on the buffer's own answers, goes back to.
const headerRequestID = "X-Request-Id"

// maxRequestID bounds an id that a caller chose, in characters.
const maxRequestID = 128

// requestID is the name of one request in the log.
type requestID struct {
	text  string
	given bool // by the caller
}

// requestIDKey finds a request's id in its context.
type requestIDKey struct{}

// identify gives the request its id: the caller's, where that is of 1 to 128 printable characters, or a
// new one. It is answered back unless an answer of a provider's has an id of its own.
func identify(w http.ResponseWriter, r *http.Request) *http.Request {
	id := requestID{text: r.Header.Get(headerRequestID), given: true}
	if id.text == "" || !printable(id.text, maxRequestID) {
		id = requestID{text: rand.Text()}
	}
	w.Header().Set(headerRequestID, id.text)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}

// idOf is the request's id.
func idOf(r *http.Request) requestID {
	id, _ := r.Context().Value(requestIDKey{}).(requestID)
	return id
}

// yieldID takes an id that the buffer made off an answer that is a provider's: SDKs report what stands
// there as the provider's own. One that the caller chose stays, where the provider has none.
func yieldID(h http.Header, r *http.Request, from http.Header) {
	if _, theirs := from[headerRequestID]; theirs || !idOf(r).given {
		h.Del(headerRequestID)
	}
}

// logOf is the log with the request's id in each line.
func (s *Server) logOf(r *http.Request) *zap.Logger {
	return s.Log.With(zap.String("request", idOf(r).text))
}
