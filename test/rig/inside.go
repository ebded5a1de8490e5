package rig

import (
	"context"
	"io"
	"net/http"
	"time"
)

// inside is a transport to the handler itself, without a socket between them. As with one, a reader that
// closes an answer ends its handler, and an abort is an unexpected end.
type inside struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (i inside) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, leave := context.WithCancel(req.Context())
	served := req.Clone(ctx)
	served.RequestURI = req.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	read, write := io.Pipe()
	w := &insideWriter{header: http.Header{}, body: write, begun: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		write.CloseWithError(i.serve(w, served))
	}()
	<-w.begun
	return &http.Response{
		StatusCode: w.status, Header: w.sent, ContentLength: -1, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &insideBody{PipeReader: read, leave: leave, ended: ended},
	}, nil
}

// serve returns how the answer's body ends.
func (i inside) serve(w *insideWriter, r *http.Request) (end error) {
	defer func() {
		switch aborted := recover(); aborted {
		case nil:
		case http.ErrAbortHandler:
			end = io.ErrUnexpectedEOF
		default:
			panic(aborted)
		}
		w.WriteHeader(http.StatusOK) // where it has said nothing yet
	}()
	i.handler.ServeHTTP(w, r)
	return io.EOF
}

// insideWriter is the response writer. What follows begun is for who waits for that.
type insideWriter struct {
	header http.Header
	body   *io.PipeWriter

	begun  chan struct{} // closed when the status is known
	status int
	sent   http.Header
}

// Header implements http.ResponseWriter.
func (w *insideWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *insideWriter) WriteHeader(status int) {
	if w.sent == nil {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	}
}

// Write implements http.ResponseWriter.
func (w *insideWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// FlushError is for http.ResponseController: a flush sends the status, and a pipe keeps nothing.
func (w *insideWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// SetWriteDeadline is for http.ResponseController. The tests' readers read on.
func (w *insideWriter) SetWriteDeadline(time.Time) error { return nil }

type insideBody struct {
	*io.PipeReader
	leave context.CancelFunc
	ended chan struct{}
}

// Close implements io.Closer. It returns when the handler has.
func (b *insideBody) Close() error {
	b.leave()
	err := b.PipeReader.Close()
	<-b.ended
	return err
}
