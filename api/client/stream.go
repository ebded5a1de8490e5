package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer/frame"
)

const (
	// steady is how long a connection must have stood to be counted as a good one, though it brought
	// nothing: a proxy cuts what is quiet, and a model may think for longer than patience lasts.
	steady = 15 * time.Second

	// fruitless is how many connections in a row, to a run that has ended, must end early and bring
	// nothing before what they brought is taken for all. It is asked only where nothing can be counted.
	fruitless = 3
)

// Stream is one run's answer, read over as many connections as it takes. Read and Position are for
// one goroutine; Close is for any.
type Stream struct {
	Run         string // id
	State       string // when the answer began
	From        int64  // the position of its first chunk
	Next        int64  // the run's head when the answer began
	ContentType string // the provider's

	link    link
	call    context.Context    // the caller's
	ctx     context.Context    // the same until Close
	cancel  context.CancelFunc // ends ctx
	key     string             // the call's; empty for none
	caller  bool               // the answer to a call: it ends as a provider route ends
	trouble trouble

	count  *frame.Counter
	bytes  int64 // read so far
	skip   int64 // of the present connection, what was read before
	broken error // of the present connection, once it has given one
	opened time.Time
	gained bool  // the present connection brought something
	ended  bool  // … and was to a run that had ended
	vain   int   // connections in a row that were so and brought nothing
	final  error // what Read returns from now on

	mu     sync.Mutex // guards what follows; never held over I/O
	conn   io.ReadCloser
	closed bool
}

// errAll says that a run which ended well has been read to its end.
var errAll = errors.New("all of the run was read")

func newStream(ctx context.Context, l link, p Patience) *Stream {
	s := &Stream{link: l, call: ctx, trouble: trouble{patience: p.withDefaults()}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// begin takes the first connection, and what its headers say.
func (s *Stream) begin(resp *http.Response) {
	h := resp.Header
	s.Run, s.State, s.ContentType = h.Get(wire.HeaderRunID), h.Get(wire.HeaderStatus), h.Get("Content-Type")
	s.From, _ = strconv.ParseInt(h.Get(wire.HeaderFrom), 10, 64) // Spool's own header: a whole number
	s.Next, _ = strconv.ParseInt(h.Get(wire.HeaderNext), 10, 64)
	s.count = frame.NewCounter(frame.Detect(s.ContentType, asksForArray(resp.Request)))
	s.take(resp)
}

// asksForArray reports whether a JSON answer is a stream of elements.
func asksForArray(req *http.Request) bool {
	return req != nil && strings.HasSuffix(req.URL.Path, ":streamGenerateContent")
}

// take reads on from another connection.
func (s *Stream) take(resp *http.Response) {
	s.broken, s.gained, s.opened = nil, false, time.Now()
	s.ended = isEnded(resp.Header.Get(wire.HeaderStatus))
	s.mu.Lock()
	old, closed := s.conn, s.closed
	s.conn = resp.Body
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if closed {
		resp.Body.Close()
	}
}

// Read reads the run's bytes. Where the connection breaks, Read waits until it is repaired. At the
// end it returns io.EOF, *InterruptedError, *GiveUpError or the context's error, and does so again.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for s.final == nil {
		if s.broken != nil {
			s.final = s.repair(s.broken)
			continue
		}
		n, err := s.conn.Read(p)
		s.broken = err
		if n = s.discard(p[:n]); n > 0 {
			s.took(p[:n])
			return n, nil
		}
		if err == io.EOF {
			s.final = err
		}
	}
	s.cancel()
	return 0, s.final
}

// discard drops what was read before, and returns how much of b is left at its start.
func (s *Stream) discard(b []byte) int {
	n := int(min(s.skip, int64(len(b))))
	s.skip -= int64(n)
	return copy(b, b[n:])
}

func (s *Stream) took(b []byte) {
	s.bytes += int64(len(b))
	_, _ = s.count.Write(b) // cannot fail
	if !s.gained {
		s.gained = true
		s.trouble.over()
	}
}

// Position is where to resume: the position of the first chunk that was not read whole.
func (s *Stream) Position() int64 {
	if s.count == nil {
		return s.From
	}
	return s.From + s.count.Chunks()
}

// Close ends the stream. What it does to the run is the run's own policy: by default nothing.
func (s *Stream) Close() error {
	s.mu.Lock()
	conn := s.conn
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// repair replaces a connection that broke, or returns how the stream ends.
func (s *Stream) repair(failure error) error {
	if failure == io.EOF {
		return failure
	}
	if time.Since(s.opened) > steady {
		s.trouble.over()
	}
	if s.vain++; s.gained || !s.ended {
		s.vain = 0
	}
	switch err := s.trouble.insist(s.ctx, failure, s.reopen); err {
	case nil:
		return nil
	case errAll:
		return io.EOF
	default:
		return s.stopped(err)
	}
}

// reopen opens another connection where the last one broke. A run that has nothing more to give is
// an error: how it ended.
func (s *Stream) reopen() error {
	run, err := s.link.run(s.ctx, http.MethodGet, s.Run)
	if err != nil {
		return err
	}
	if err := s.end(run); err != nil {
		return err
	}
	resp, err := s.link.resume(s.ctx, s.Run, s.place())
	if err != nil {
		return err
	}
	s.take(resp)
	return nil
}

// place is where to read on. From the run's start, what was read is an offset. From elsewhere it is
// one from an unknown point; there the last whole chunk is the place, and what came after is skipped.
func (s *Stream) place() url.Values {
	name, at := "from", s.Position()
	switch {
	case s.From == 0:
		name, at = "from_byte", s.bytes
	case s.count != nil:
		s.skip = s.count.Pending()
	}
	return url.Values{name: {strconv.FormatInt(at, 10)}}
}

// end returns how the run has ended if all of it was read: errAll, or an *InterruptedError. nil says
// that there is more.
//
// What was read may be more than the run has: the error event by which a provider route tells of an
// interruption is no part of the run, and a cut within it leaves some of it behind.
func (s *Stream) end(run wire.Run) error {
	short := &InterruptedError{Run: run.ID, State: run.State, Reason: run.Reason, Next: min(s.Position(), run.Head)}
	switch run.State {
	case "completed":
		if s.From == 0 && s.bytes >= run.Bytes {
			return errAll
		}
	case "failed":
		if !isEnded(s.State) || run.Head == 0 { // the answer had begun as another, or is stored nowhere
			return short
		}
	case "interrupted", "cancelled":
		if !s.hasAll(run) {
			return nil
		}
		if s.From == 0 {
			short.Next = run.Head
		}
		if s.caller && run.Reason == "provider_error" { // told by the provider itself
			return errAll
		}
		return short
	}
	return nil
}

// hasAll reports whether all bytes of a run that has ended were read.
func (s *Stream) hasAll(run wire.Run) bool {
	if s.From == 0 {
		return s.bytes >= run.Bytes
	}
	return s.Position() >= run.Head || s.vain >= fruitless
}

func isEnded(state string) bool { return state != "" && state != "idle" && state != "streaming" }

// stopped is the error for a stream that failed for good: the caller's own doing, the run's, or a
// repair that did not come about.
func (s *Stream) stopped(err error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	switch {
	case s.call.Err() != nil:
		return s.call.Err()
	case closed:
		return http.ErrBodyReadAfterClose
	}
	if _, ok := errors.AsType[*InterruptedError](err); ok {
		return err
	}
	return &GiveUpError{Run: s.Run, Key: s.key, Next: s.Position(), Bytes: s.bytes, Tries: s.trouble.tries, Err: err}
}
