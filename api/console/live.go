package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/tail"
)

const (
	livePace  = 80 * time.Millisecond // between two messages: what came meanwhile shares one
	liveQuiet = 15 * time.Second      // without a message, until a sign of life
	liveWrite = 20 * time.Second      // that one write may take
	liveBytes = 16 << 20              // of an answer, on one connection; then the page asks again
)

// errQuiet ends a wait in which nothing came.
var errQuiet = errors.New("nothing yet")

// live tells a page what comes of an answer: messages of pieces and events, whose id is the next
// position, then one event end, or full where the page has had as much as it can hold.
func (c *Console) live(w http.ResponseWriter, r *http.Request, v Viewer) error {
	run, err := c.visible(r.Context(), r, v)
	if err != nil {
		return err
	}
	from := v.From
	for _, text := range []string{r.URL.Query().Get("from"), r.Header.Get("Last-Event-ID")} {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			from = max(v.From, n)
		}
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s := &liveStream{w: w, rc: rc, cursor: tail.New(c.Store, run.ID, min(from, run.Head))}
	s.cursor.Bound(c.Pages)
	defer s.cursor.Close()
	switch {
	case !s.send("retry: 2000\n\n"):
	case run.State == buffer.Released: // swept or not
		s.end(run)
	default:
		s.follow(r.Context())
	}
	return nil
}

// liveStream is one page that watches one answer.
type liveStream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	cursor *tail.Cursor
	told   int64 // bytes of the answer
}

func (s *liveStream) follow(ctx context.Context) {
	pace := time.NewTicker(livePace)
	defer pace.Stop()
	for {
		page, err := s.next(ctx)
		ok := true
		switch {
		case errors.Is(err, errQuiet):
			ok = s.send(": quiet\n\n")
		case err == io.EOF, errors.Is(err, buffer.ErrReleased):
			s.end(page.Run)
			return
		case err != nil:
			return // the page comes back
		default:
			var t transcript
			t.take(page)
			s.told += t.bytes
			ok = s.event("message", t.Next, t)
		}
		if ok && s.told >= liveBytes {
			s.event("full", s.cursor.Pos(), map[string]int64{"next": s.cursor.Pos()})
			return
		}
		if !ok {
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

// end tells that nothing more comes.
func (s *liveStream) end(run buffer.Run) {
	s.event("end", s.cursor.Pos(), map[string]string{"state": string(run.State)})
}

// next is the answer's next page, or errQuiet.
func (s *liveStream) next(ctx context.Context) (*buffer.Page, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, liveQuiet, errQuiet)
	defer cancel()
	return s.cursor.Next(ctx)
}

// event sends one event whose id is the position to come back with. It reports whether the page still
// listens.
func (s *liveStream) event(name string, next int64, data any) bool {
	text, err := json.Marshal(data)
	return err == nil && s.send(fmt.Sprintf("event: %s\nid: %d\ndata: %s\n\n", name, next, text))
}

func (s *liveStream) send(text string) bool {
	_ = s.rc.SetWriteDeadline(time.Now().Add(liveWrite)) // a writer that has none never blocks for ever
	_, err := io.WriteString(s.w, text)
	return err == nil && s.rc.Flush() == nil
}
