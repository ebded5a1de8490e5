package buffer

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/provider"
)

const (
	// brisk is how many bytes at once say that more is waiting, which is read while a commit is under way.
	// What comes slower is left to the socket meanwhile: one read takes all of it then.
	brisk = 2 << 10
	// maxBatch bounds the bytes that are gathered for one commit of one run, where there are few runs.
	maxBatch = 256 << 10
	// maxRefusal bounds the body of an answer that is not a success.
	maxRefusal = 4 << 20
)

// arrival is what came from the provider: the head, then chunks, then the end of the body in err (io.EOF,
// or what broke). They come together where nobody took them in between.
type arrival struct {
	head    *head
	chunks  [][]byte
	err     error
	partial []byte
}

// head is what is known of an answer before its body.
type head struct {
	*provider.Answer
	framing frame.Kind
}

// success reports whether the status is one under which content may come.
func (h *head) success() bool { return h.Status >= 200 && h.Status < 300 }

// dated is the head's header with a Date: that of its arrival where the provider gave none, as RFC 9110,
// section 6.6.1, has it. A date in Retry-After is measured against it.
func (h *head) dated() http.Header {
	if h.Header.Get("Date") != "" {
		return h.Header
	}
	dated := h.Header.Clone()
	dated.Set("Date", h.Received.UTC().Format(http.TimeFormat))
	return dated
}

// receive sends the run's request and passes on what comes, in order, until the body ends or ctx does. It
// owns the body.
func (d *drain) receive(ctx context.Context, w *provider.Wire, out *inbox) {
	answer, err := d.open(ctx, w)
	if err != nil {
		out.put(ctx, arrival{err: err})
		return
	}
	defer answer.Body.Close() // the drain has decided by then: nothing that Close says could change it
	h := &head{Answer: answer, framing: frame.Detect(answer.Header.Get("Content-Type"), d.started.Stream)}
	limit := d.cfg.MaxChunk
	if !h.success() {
		h.framing, limit = frame.Whole, maxRefusal
	}
	if !out.put(ctx, arrival{head: h}) {
		return
	}
	sc := frame.NewScanner(answer.Body, h.framing, limit)
	room := 0
	for {
		a, size := gather(sc, out.all.share(), room)
		room = len(a.chunks)
		if !out.put(ctx, a) || a.err != nil {
			return
		}
		if size < brisk && !out.taken(ctx) {
			return
		}
	}
}

// open makes the request on a goroutine of its own: that needs a deep stack for a moment, and the one that
// reads the answer lives for as long as the answer, of which there may be ten thousand.
func (d *drain) open(ctx context.Context, w *provider.Wire) (answer *provider.Answer, err error) {
	var opening sync.WaitGroup
	opening.Go(func() { answer, err = d.client.Open(ctx, d.way.send, w) })
	opening.Wait()
	return answer, err
}

// gather waits for one chunk and takes what else is there already, to about most bytes, and says how many.
// It makes room for so many chunks as came the last time.
func gather(sc *frame.Scanner, most, room int) (a arrival, size int) {
	for {
		chunk, err := sc.Next()
		if err != nil {
			a.err, a.partial = err, sc.Partial()
			return a, size
		}
		if a.chunks == nil { // and not while nothing comes
			a.chunks = make([][]byte, 0, max(room, 1))
		}
		a.chunks = append(a.chunks, chunk)
		if size += len(chunk); size >= most || !sc.Buffered() {
			return a, size
		}
	}
}

// cleanEnd reports whether the body ended in a way that proves that all of it arrived.
func (h *head) cleanEnd(err error) bool { return err == io.EOF && h.ProvesEnd }
