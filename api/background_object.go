package api

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
)

// lastChunks is how many chunks, counted from the head, are looked at first for the last response
// object: the terminal event and what may follow it.
const lastChunks = 16

// lastObject returns the last response object in the run's log as the provider sent it, and the run
// as it was then; nil where the log has none. It looks from the end of the log towards its beginning,
// so that neither a run that has ended nor one that has just begun is read whole.
func (s *Server) lastObject(ctx context.Context, run buffer.Run) (buffer.Run, []byte, error) {
	for back := int64(lastChunks); ; back *= 8 {
		from := max(0, run.Head-back)
		seen, object, err := s.lastObjectSince(ctx, run, from)
		if err != nil || object != nil || from == 0 {
			return seen, object, err
		}
	}
}

func (s *Server) lastObjectSince(ctx context.Context, run buffer.Run, from int64) (buffer.Run, []byte, error) {
	t, err := resume.Open(ctx, s.Store, run.ID, resume.FromPosition(from))
	if err != nil {
		return run, nil, err
	}
	t.Bound(s.Pages)
	defer t.Close()
	var object []byte
	for {
		page, err := t.Poll(ctx)
		for _, c := range page.Chunks {
			if found := provider.ResponseObject(page.Run.Framing, c.Data); found != nil {
				object = append(object[:0], found...) // the page is given back
			}
		}
		switch {
		case err != nil && err != io.EOF:
			return run, nil, err
		case err == io.EOF, t.Pos() >= page.Run.Head:
			return page.Run, object, nil
		}
	}
}

// asItStands is the run's last response object as an SDK may see it: the provider's, unless the run
// was stopped before the provider had told the end. Then its status says so.
func asItStands(run buffer.Run, object []byte) []byte {
	switch run.Outcome {
	case buffer.Cancelled:
		return provider.CancelledResponse(object)
	case buffer.Interrupted:
		return provider.InterruptedResponse(object, provider.Cut{RunID: run.ID.String(), Reason: string(run.Reason), Next: run.Head})
	}
	return object
}

// writeResponse answers with a response object.
func (s *Server) writeResponse(w http.ResponseWriter, r *http.Request, run buffer.Run, object []byte) {
	h, id := w.Header(), run.ID.String()
	yieldID(h, r, run.Header)
	mergeHeader(h, run.Header)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Location", "/runs/"+id)
	h.Set(wire.HeaderRunID, id)
	h.Set(wire.HeaderStatus, string(run.State))
	h.Set(wire.HeaderNext, strconv.FormatInt(run.Head, 10))
	out := socket{w, s.Limits.Write}
	out.write(object) // a client that has left hears nothing
	out.hurry()       // the server still has the end of the body to write
}
