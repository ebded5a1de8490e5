package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/resume"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// played is a recording, as a run that has ended.
type played struct {
	*rig.Rig
	rec    fakellm.Recording
	run    buffer.Run
	chunks []buffer.Chunk
	every  int64 // what is resumed from each so many positions is read to its end
}

// For every reader and every position of every recording: what was read before it and what is read from
// it on are together the recording. Of what is long the first bytes tell whether it is the right place;
// then a part of the positions is read to the end.
func TestPositions_EveryReaderJoinsAtEach(t *testing.T) {
	recordings := fakellm.Recordings(t)
	g := rig.New(t, rig.Options{Inside: true, Plain: true, Fake: fakellm.Config{Recordings: recordings}})
	for _, rec := range recordings {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			const most = 128 << 10 // bytes of what is read to its end, about
			p := &played{Rig: g, rec: rec}
			p.run, p.chunks = playRecording(t, g, rec, 0)
			p.every = 1 + p.run.Head*int64(len(rec.Body))/2/most
			p.resumes(t)
			p.events(t)
			p.streams(t)
			p.background(t)
			p.client(t)
		})
	}
}

// begin is the byte where the chunk at a position begins, which may be the one to come.
func (p *played) begin(pos int64) int64 {
	if pos == 0 {
		return 0
	}
	return p.chunks[pos-1].End
}

// joins reads an answer and compares it with what is to follow a position: to its end, or some bytes that
// tell it from what follows any other.
func (p *played) joins(t *testing.T, what string, pos int64, body io.ReadCloser, want []byte, wantEnd error) {
	t.Helper()
	defer body.Close()
	const some = 1 << 10
	if whole := pos%p.every == 0; !whole && len(want) > some {
		want = want[:some]
		wantEnd = nil
		body = limited(body, some)
	}
	got, err := io.ReadAll(body)
	if !bytes.Equal(got, want) || !errors.Is(err, wantEnd) {
		t.Fatalf("%s: %d bytes, %v; want %d, %v: the first difference is at %d", what, len(got), err, len(want), wantEnd, differ(got, want))
	}
}

func differ(a, b []byte) (at int) {
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return at
}

// end is how an answer that is the run's bytes alone ends.
func (p *played) end() error {
	if p.run.State == buffer.Completed {
		return nil
	}
	return io.ErrUnexpectedEOF // it must not look whole
}

func (p *played) get(t *testing.T, path string, headers ...string) io.ReadCloser {
	t.Helper()
	resp := p.Open("GET", path, "", headers...)
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		t.Fatalf("%s: status %d", path, resp.StatusCode)
	}
	return resp.Body
}

// resumes asks /resume for each position by each of its names, and for bytes inside of chunks.
func (p *played) resumes(t *testing.T) {
	t.Helper()
	path := "/runs/" + p.run.ID.String() + "/resume"
	ask := func(pos, begin int64, query string, headers ...string) {
		t.Helper()
		p.joins(t, fmt.Sprint(query, headers), pos, p.get(t, path+query, headers...), p.rec.Body[begin:], p.end())
	}
	for pos := range p.run.Head + 1 {
		begin := p.begin(pos)
		ask(pos, begin, fmt.Sprintf("?from=%d", pos))
		ask(pos, begin, fmt.Sprintf("?from_byte=%d", begin))
		if pos > 0 {
			ask(pos, begin, "", "Last-Event-ID", fmt.Sprint(pos-1))
		}
		if pos%8 == 0 && pos < p.run.Head {
			inside := (begin + p.chunks[pos].End) / 2
			ask(pos, inside, fmt.Sprintf("?from_byte=%d", inside))
		}
	}
	if a := p.Do("GET", fmt.Sprintf("%s?from=%d", path, p.run.Head+1), ""); a.Status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("from beyond the head: status %d, want 416", a.Status)
	}
}

// streams asks /stream, which is for live runs: another one with the same chunks, by tokens for each position.
func (p *played) streams(t *testing.T) {
	t.Helper()
	live := p.run
	live.ID, live.Key, live.State, live.Outcome, live.Reason, live.Head, live.Bytes = ulid.Make(), "", buffer.Idle, "", "", 0, 0
	log, live, err := p.Store.Create(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	attempt := buffer.Attempt{N: 1, Sent: live.Created}
	if err := log.Attempt(t.Context(), attempt); err != nil {
		t.Fatal(err)
	}
	data := make([][]byte, len(p.chunks))
	for i, c := range p.chunks {
		data[i] = c.Data
	}
	if err := log.Append(t.Context(), data, buffer.Streaming, buffer.Closing{Status: p.run.Status, Header: p.run.Header, Framing: p.run.Framing}); err != nil {
		t.Fatal(err)
	}
	for pos := range p.run.Head {
		token := p.Server.Tokens.Mint(resume.Grant{Run: live.ID, From: pos, Expires: time.Now().Add(time.Hour).Truncate(time.Millisecond)})
		want := p.rec.Body[p.begin(pos):]
		body := p.get(t, "/runs/"+live.ID.String()+"/stream?resume=1&token="+token, "Authorization", "")
		p.joins(t, fmt.Sprintf("/stream from %d", pos), pos, limited(body, len(want)), want, nil) // it has no end yet
	}
	attempt.Ended = time.Now()
	if err := log.Append(t.Context(), nil, buffer.Interrupted, buffer.Closing{Reason: buffer.Shutdown, Attempt: &attempt}); err != nil {
		t.Fatal(err)
	}
}

// background asks for what follows each sequence number, as OpenAI's background protocol does.
func (p *played) background(t *testing.T) {
	t.Helper()
	if p.rec.Dialect != "openai_responses" {
		return
	}
	path := "/tape/" + p.rec.Name + p.rec.Path + "/" + p.run.ProviderID
	for _, c := range p.chunks {
		if s, ok := provider.SequenceNumber(c.Data); ok {
			query := fmt.Sprintf("?stream=true&starting_after=%d", s)
			p.joins(t, query, c.Pos, p.get(t, path+query), p.rec.Body[c.End:], nil)
		}
	}
}

// client reads from each position with the Go client.
func (p *played) client(t *testing.T) {
	t.Helper()
	c := &client.Client{BaseURL: p.URL, Credential: "k", HTTP: p.Client, Patience: client.Patience{Backoff: time.Microsecond, MaxBackoff: time.Microsecond}}
	var end error
	if p.run.State != buffer.Completed {
		end = errInterrupted
	}
	for pos := range p.run.Head + 1 {
		stream, err := c.Resume(t.Context(), p.run.ID.String(), pos)
		if err != nil {
			t.Fatalf("client from %d: %v", pos, err)
		}
		p.joins(t, fmt.Sprintf("client from %d", pos), pos, clientStream{stream}, p.rec.Body[p.begin(pos):], end)
	}
}

// clientStream makes one error of those that tell of an interrupted run.
type clientStream struct{ *client.Stream }

var errInterrupted = errors.New("interrupted")

// Read implements io.Reader.
func (s clientStream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	if _, ok := errors.AsType[*client.InterruptedError](err); ok {
		err = errInterrupted
	}
	return n, err
}

// limited is an answer that ends after so many bytes.
func limited(body io.ReadCloser, n int) io.ReadCloser {
	return closing{io.LimitReader(body, int64(n)), body}
}

// closing reads one thing and closes another.
type closing struct {
	io.Reader
	io.Closer
}
