package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// listen starts the time of a request's body, whether its handler looks at it or not: what is left of
// it net/http reads before the answer goes out, and a peer that sends nothing would hold that for ever.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	if r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.Limits.BodyTime)) // as in heard
	}
}

// heard says that the request has come whole, or that its answer has begun: from here on the
// connection is read for nothing but to see its peer leave, and that wait has no end.
func heard(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a connection that has none is bounded by its peer
}

// readBody reads a request's body of at most limit bytes, in the time that it has. name is the limit
// as its caller is told of it.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, name string) ([]byte, error) {
	if r.ContentLength > limit && r.Header.Get("Expect") != "" { // the client asks before it sends
		return nil, tooLarge(name, limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil { // the deadline stays: what is still to come must not be waited for either
		return nil, bodyFault(err, name)
	}
	heard(w)
	return body, nil
}

// bodyFault is what a caller is told whose request's body did not come.
func bodyFault(err error, name string) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(name, large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return slowBody("limits.body_time")
	}
	return bad("the request's body could not be read")
}

func tooLarge(name string, limit int64) error {
	return &fault{code: wire.CodeTooLarge, detail: fmt.Sprintf("the request's body is over %s, %d bytes", name, limit)}
}

func slowBody(limit string) error {
	return &fault{code: wire.CodeSlowBody, detail: "the request's body did not come within " + limit}
}

// upload is a body that may take as long as it needs, but for a limit between two reads.
type upload struct {
	io.ReadCloser
	w    http.ResponseWriter
	gap  time.Duration
	late atomic.Bool // the limit was reached; read by another goroutine than the one that uploads
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	_ = http.NewResponseController(u.w).SetReadDeadline(time.Now().Add(u.gap)) // as in heard
	n, err := u.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		heard(u.w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.late.Store(true)
	}
	return n, err
}
