package buffer

import (
	"errors"
	"testing"

	"github.com/oklog/ulid/v2"
)

// What all rests hold together is bounded, and comes free with each of them.
func TestRest_IsBounded(t *testing.T) {
	all := newRests()
	mib := make([]byte, 1<<20)
	full := all.begin(Run{ID: ulid.Make(), State: Streaming, Head: 3, Bytes: 30})
	for i := range maxRests >> 20 {
		if err := full.add([][]byte{mib}); err != nil {
			t.Fatalf("after %d MiB: %v", i, err)
		}
	}
	other := all.begin(Run{ID: ulid.Make(), State: Streaming})
	if err := other.add([][]byte{{1}}); !errors.Is(err, errRestFull) {
		t.Errorf("got error %v", err)
	}
	all.drop(full.run.ID)
	if err := other.add([][]byte{{1}}); err != nil || all.held != 1 {
		t.Errorf("%d bytes are held, %v", all.held, err)
	}
}

// A rest is read as a log is: from the head on, in pages, to its end; its head is not moved by it.
func TestRest_IsReadAsALog(t *testing.T) {
	r := newRests().begin(Run{ID: ulid.Make(), State: Streaming, Head: 3, Bytes: 30})
	bell := r.watch()
	if err := r.add([][]byte{[]byte("ab"), []byte("cd"), []byte("ef")}); err != nil {
		t.Fatal(err)
	}
	<-bell
	for from, want := range map[int64]int{3: 2, 4: 2, 5: 1, 6: 0} {
		page, err := r.read(from, 4)
		if err != nil || len(page.Chunks) != want || page.Run.Head != 3 {
			t.Errorf("from %d: %d chunks of a run at %d, %v", from, len(page.Chunks), page.Run.Head, err)
		}
		if want > 0 && (page.Chunks[0].Pos != from || page.Chunks[0].End != 30+2*(from-2)) {
			t.Errorf("from %d: chunk at %d to %d", from, page.Chunks[0].Pos, page.Chunks[0].End)
		}
	}
	if page, err := r.read(3, 0); err != nil || len(page.Chunks) != 0 {
		t.Errorf("%d chunks of no bytes, %v", len(page.Chunks), err)
	}
	if _, err := r.read(7, 4); !errors.Is(err, ErrAhead) {
		t.Errorf("got error %v", err)
	}
	r.finish()
	if page, _ := r.read(6, 4); page.Run.Outcome != Interrupted || page.Run.Reason != Storage || page.Run.Ended.IsZero() {
		t.Errorf("it ended as %s %q", page.Run.Outcome, page.Run.Reason)
	}
}
