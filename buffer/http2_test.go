package buffer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// HTTP/2 frames and error codes, RFC 9113, sections 6 and 7.
const (
	frameData     = 0
	frameHeaders  = 1
	frameRST      = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	flagAck       = 1
	flagEndStream = 1
	flagEndHeader = 4

	codeNone     = 0
	codeInternal = 2
	codeRefused  = 7
)

// h2 is a provider that speaks HTTP/2 frame by frame, so that it can end a stream in every way there
// is. The i-th request is answered by answers[i], later ones by the last.
type h2 struct {
	answers []func(h2Stream)

	work  sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	asked int
}

// h2Stream is one request that has come whole.
type h2Stream struct {
	out chan<- []byte
	id  uint32
}

func (s h2Stream) frame(kind, flags byte, stream uint32, payload []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	s.out <- append(b, payload...)
}

// head is status 200 and the content type, in HPACK's static table.
func (s h2Stream) head() {
	block := append([]byte{0x88, 0x0f, 0x10, byte(len(eventStream))}, eventStream...)
	s.frame(frameHeaders, flagEndHeader, s.id, block)
}

func (s h2Stream) data(events ...[]byte) { s.frame(frameData, 0, s.id, bytes.Join(events, nil)) }
func (s h2Stream) end()                  { s.frame(frameData, flagEndStream, s.id, nil) }
func (s h2Stream) rst(code uint32) {
	s.frame(frameRST, 0, s.id, binary.BigEndian.AppendUint32(nil, code))
}

// goAway says that no stream after last was or will be worked on, and why, for people.
func (s h2Stream) goAway(last, code uint32, why string) {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code)
	s.frame(frameGoAway, 0, 0, append(b, why...))
}

// hangUp closes the connection when all of it is written.
func (s h2Stream) hangUp() { s.out <- nil }

func (h *h2) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, far)
	h.work.Go(func() { h.serve(far) })
	return near, nil
}

func (h *h2) serve(c net.Conn) {
	defer c.Close()
	out := make(chan []byte, 64) // a writer of its own: on a pipe both sides would wait for each other
	defer close(out)
	h.work.Go(func() {
		for b := range out {
			if b == nil {
				_ = c.Close() // serve closes it too
				continue
			}
			_, _ = c.Write(b) // a peer that has gone is no fault of the script
		}
	})
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	h2Stream{out, 0}.frame(frameSettings, 0, 0, nil)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
		if _, err := io.ReadFull(c, payload); err != nil {
			return
		}
		s := h2Stream{out, binary.BigEndian.Uint32(head[5:])}
		kind, flags := head[3], head[4]
		switch {
		case (kind == frameSettings || kind == framePing) && flags&flagAck == 0:
			s.frame(kind, flagAck, 0, payload[:len(payload)*int(kind/framePing)])
		case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
			h.answer(s)
		}
	}
}

func (h *h2) answer(s h2Stream) {
	h.mu.Lock()
	play := h.answers[min(h.asked, len(h.answers)-1)]
	h.asked++
	h.mu.Unlock()
	play(s)
}

func (h *h2) close() {
	h.mu.Lock()
	for _, c := range h.conns {
		_ = c.Close() // most often for the second time
	}
	h.mu.Unlock()
	h.work.Wait()
}

func (h *h2) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// overHTTP2 runs a test in a bubble whose provider speaks HTTP/2.
func overHTTP2(t *testing.T, h *h2, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(h.close)
		tr := transport(h.dial)
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
		test(newRig(t, "http://provider", tr))
	})
}

func TestHTTP2_EveryStreamHasItsRow(t *testing.T) {
	complete := entry{"primary", policy.None, policy.Complete, policy.SentUnknown, policy.BilledYes}
	retried := func(sent policy.Sent, billed policy.Billed) entry {
		return entry{"primary", policy.Transient, policy.Retry, sent, billed}
	}
	cut := entry{"primary", policy.Transient, policy.Interrupt, policy.SentUnknown, policy.BilledYes}
	good := func(s h2Stream) { s.head(); s.data(role, token); s.data(finish, done); s.end() }

	for _, row := range []struct {
		name   string
		kind   policy.Kind
		first  func(h2Stream)
		state  buffer.State
		reason buffer.Reason
		ledger []entry
	}{
		{"good", policy.ReadOnly, good, buffer.Completed, "", []entry{complete}},
		{"refused stream", policy.External, func(s h2Stream) { s.rst(codeRefused) }, buffer.Completed, "", []entry{retried(policy.NotSent, policy.BilledNo), complete}},
		{"reset before the head", policy.ReadOnly, func(s h2Stream) { s.rst(codeInternal) }, buffer.Completed, "", []entry{retried(policy.SentUnknown, policy.BilledUnknown), complete}},
		{"reset before the head, external", policy.External, func(s h2Stream) { s.rst(codeInternal) }, buffer.Failed, buffer.Reset,
			[]entry{{"primary", policy.Transient, policy.Fail, policy.SentUnknown, policy.BilledUnknown}}},
		{"reset before content", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role); s.rst(codeInternal) }, buffer.Completed, "", []entry{retried(policy.SentUnknown, policy.BilledUnknown), complete}},
		{"going away before the head", policy.External, func(s h2Stream) { s.goAway(0, codeNone, "") }, buffer.Completed, "", []entry{retried(policy.NotSent, policy.BilledNo), complete}},
		{"going away in error before the head", policy.External, func(s h2Stream) { s.goAway(0, codeInternal, "") }, buffer.Completed, "", []entry{retried(policy.NotSent, policy.BilledNo), complete}},
		{"going away with the stream", policy.ReadOnly, func(s h2Stream) { s.goAway(s.id, codeNone, ""); s.hangUp() }, buffer.Completed, "", []entry{retried(policy.SentUnknown, policy.BilledUnknown), complete}},
		{"going away with the stream, external", policy.External, func(s h2Stream) {
			s.goAway(s.id, codeInternal, "stream error: stream ID 1; REFUSED_STREAM")
			s.hangUp()
		}, buffer.Failed, buffer.Reset,
			[]entry{{"primary", policy.Transient, policy.Fail, policy.SentUnknown, policy.BilledUnknown}}},
		{"reset after content", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role, token); s.rst(codeInternal) }, buffer.Interrupted, buffer.Reset, []entry{cut}},
		{"refused after content", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role, token); s.rst(codeRefused) }, buffer.Interrupted, buffer.Reset, []entry{cut}},
		{"going away in error after content", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role, token); s.goAway(0, codeInternal, "") }, buffer.Interrupted, buffer.Reset, []entry{cut}},
		{"going away, the stream goes on", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(token); s.goAway(s.id, codeNone, ""); s.data(finish, done); s.end() }, buffer.Completed, "", []entry{complete}},
		{"end without proof", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role, token); s.end() }, buffer.Interrupted, buffer.EOFWithoutEnd, []entry{cut}},
		{"silence", policy.ReadOnly, func(h2Stream) {}, buffer.Completed, "", []entry{retried(policy.SentUnknown, policy.BilledUnknown), complete}},
		{"stall after content", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(role, token) }, buffer.Interrupted, buffer.Stalled, []entry{cut}},
		{"finish, then reset", policy.ReadOnly, func(s h2Stream) { s.head(); s.data(token, finish); s.rst(codeInternal) }, buffer.Completed, "", []entry{complete}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := &h2{answers: []func(h2Stream){row.first, good}}
			overHTTP2(t, h, func(r *rig) {
				c := r.call()
				c.Run.Kind = row.kind
				run := r.do(c)
				r.wantState(run, row.state, row.reason)
				r.wantLedger(run, row.ledger...)
				time.Sleep(time.Hour)
				if n := h.count(); n != len(run.Attempts) {
					r.Errorf("the provider got %d requests, the ledger has %d", n, len(run.Attempts))
				}
			})
		})
	}
}

// Without a body net/http would open a refused stream again by itself.
func TestHTTP2_RefusedStreamWithoutABodyHasItsRow(t *testing.T) {
	h := &h2{answers: []func(h2Stream){func(s h2Stream) { s.rst(codeRefused) }}}
	overHTTP2(t, h, func(r *rig) {
		c := r.call()
		c.Run.Dialect, c.Send.Body = provider.Generic, nil
		c.Run.Budget.Attempts = 2
		run := r.do(c)
		if run.State != buffer.Failed || h.count() != len(run.Attempts) {
			r.Errorf("run is %s; the provider got %d requests, the ledger has %d", run.State, h.count(), len(run.Attempts))
		}
	})
}
