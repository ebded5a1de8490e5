package test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/rig"
)

// Every recording of a real provider, whatever the boundaries of the reads: what is delivered, what
// is stored, and what every resume gives are the recording.
func TestRecordings_AreDeliveredStoredAndResumedByteForByte(t *testing.T) {
	recordings := fakellm.Recordings(t)
	g := rig.New(t, rig.Options{Plain: true, Fake: fakellm.Config{Recordings: recordings}})
	for _, r := range recordings {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			run, whole := playRecording(t, g, r, 0)
			resumeEverywhere(t, g, r, run, whole)
			for _, size := range []int{1, 7, 37} {
				if _, chunks := playRecording(t, g, r, size); len(chunks) != len(whole) {
					t.Errorf("reads of %d bytes gave %d chunks, one read %d", size, len(chunks), len(whole))
				}
			}
		})
	}
}

// playRecording makes the call whose answer is the recording, in reads of size bytes, and returns the
// run and what is stored of it.
func playRecording(t *testing.T, g *rig.Rig, r fakellm.Recording, size int) (buffer.Run, []buffer.Chunk) {
	t.Helper()
	stem := r.Name
	if size > 0 {
		stem += fmt.Sprintf(",chunk=%d", size)
	}
	body := fmt.Sprintf(`{"model":"m","stream":true,"n":%d}`, size)
	a := g.Do("POST", "/tape/"+stem+r.Path, body)
	if a.Err != nil || a.Status != r.Status {
		t.Fatalf("status %d, body ended with %v, want %d and a clean end", a.Status, a.Err, r.Status)
	}
	if !bytes.Equal(a.Body, r.Body) {
		t.Fatalf("delivered %d bytes are not the recording's %d", len(a.Body), len(r.Body))
	}
	run := g.Await(a.RunID(), buffer.Completed, buffer.Interrupted)
	if run.State == buffer.Interrupted && run.Reason != buffer.ProviderError { // three recordings end with one
		t.Fatalf("run is %s, reason %q", run.State, run.Reason)
	}
	var chunks []buffer.Chunk
	for int64(len(chunks)) < run.Head {
		page, err := g.Store.Read(t.Context(), run.ID, int64(len(chunks)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, page.Chunks...)
	}
	if got := join(chunks); !bytes.Equal(got, r.Body) {
		t.Fatalf("stored %d bytes are not the recording's %d", len(got), len(r.Body))
	}
	return run, chunks
}

func join(chunks []buffer.Chunk) []byte {
	var b []byte
	for _, c := range chunks {
		b = append(b, c.Data...)
	}
	return b
}

// resumeEverywhere resumes from each position, and from some bytes inside each chunk.
func resumeEverywhere(t *testing.T, g *rig.Rig, r fakellm.Recording, run buffer.Run, chunks []buffer.Chunk) {
	t.Helper()
	whole := run.State == buffer.Completed // else every /resume ends with an abort
	begin := int64(0)
	for pos := 0; pos <= len(chunks); pos++ {
		a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", run.ID, pos), "")
		if (a.Err == nil) != whole || !bytes.Equal(a.Body, r.Body[begin:]) {
			t.Fatalf("from=%d: %d bytes, %v; want the recording's last %d", pos, len(a.Body), a.Err, int64(len(r.Body))-begin)
		}
		if pos == len(chunks) {
			break
		}
		if pos%16 == 0 {
			at := (begin + chunks[pos].End) / 2
			a = g.Do("GET", fmt.Sprintf("/runs/%s/resume?from_byte=%d", run.ID, at), "")
			if (a.Err == nil) != whole || !bytes.Equal(a.Body, r.Body[at:]) {
				t.Fatalf("from_byte=%d: %d bytes, %v; want %d", at, len(a.Body), a.Err, int64(len(r.Body))-at)
			}
		}
		begin = chunks[pos].End
	}
	if a := g.Do("GET", fmt.Sprintf("/runs/%s/resume?from=%d", run.ID, len(chunks)+1), ""); a.Status != 416 {
		t.Errorf("from beyond the head: status %d, want 416", a.Status)
	}
}

func TestRecordings_CutOnesAreNeverCompleted(t *testing.T) {
	recordings := fakellm.Recordings(t)
	g := rig.New(t, rig.Options{Plain: true, Fake: fakellm.Config{Recordings: recordings}})
	for _, r := range recordings {
		if r.Dialect == "generic" || len(r.Body) < 2000 || strings.Contains(r.Path, "runs") {
			continue // of an unknown shape a clean end is all the proof there is
		}
		if bytes.Contains(r.Body[:len(r.Body)/2], []byte("messageStop")) {
			continue // its proof comes early, a long trace after it
		}
		for _, how := range []string{"cut", "end"} {
			t.Run(r.Name+"/"+how, func(t *testing.T) {
				t.Parallel()
				a := g.Do("POST", fmt.Sprintf("/tape/%s,%s=%d%s", r.Name, how, len(r.Body)/2, r.Path), `{"stream":true}`)
				if a.Status == 200 && a.Err == nil {
					t.Error("a client sees a clean end of an answer that was cut")
				}
				run := g.Await(a.RunID(), buffer.Interrupted, buffer.Completed, buffer.Failed)
				if run.State == buffer.Completed {
					t.Errorf("run is %s, reason %q", run.State, run.Reason)
				}
			})
		}
	}
}
