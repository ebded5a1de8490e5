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

// Every recording of a real provider, whatever the boundaries of the reads: what is delivered and what
// is stored are the recording.
func TestRecordings_AreDeliveredAndStoredByteForByte(t *testing.T) {
	recordings := fakellm.Recordings(t)
	g := rig.New(t, rig.Options{Plain: true, Fake: fakellm.Config{Recordings: recordings}})
	for _, r := range recordings {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			_, whole := playRecording(t, g, r, 0)
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
