package resume_test

import (
	"errors"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
	"github.com/spool-dev/spool/resume"
)

// A commit is in the file a moment before it is announced. Who asks for the run then is told its head, and
// may read from there.
func TestOpen_FromAHeadThatIsNotAnnouncedYet(t *testing.T) {
	committed, announce := make(chan struct{}), make(chan struct{})
	armed := false // the writer's own while a commit is under way
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Sync: "normal", Fault: func(p sqlite.Point) error {
		if armed && p == sqlite.AtCommitted {
			armed = false
			close(committed)
			<-announce
		}
		return nil
	}})
	must(t, err)
	log, run, err := store.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
	must(t, err)
	must(t, log.Attempt(t.Context(), buffer.Attempt{N: 1}))
	must(t, log.Append(t.Context(), [][]byte{[]byte("a")}, buffer.Streaming, buffer.Closing{}))
	armed = true
	appended := make(chan error)
	go func() {
		appended <- log.Append(t.Context(), [][]byte{[]byte("b"), []byte("c")}, buffer.Completed, buffer.Closing{})
	}()
	<-committed

	told, err := store.Get(t.Context(), run.ID)
	must(t, err)
	if told.Head != 3 {
		t.Fatalf("the head is %d", told.Head)
	}
	for name, ask := range map[string]resume.Ask{
		"from": {From: resume.Given("3")}, "from_byte": {FromByte: resume.Given("3")}, "inside": {From: resume.Given("2")},
	} {
		s, err := resume.Understand(run.ID.String(), ask)
		must(t, err)
		if _, err := resume.Open(t.Context(), store, run.ID, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	last, err := resume.Understand(run.ID.String(), resume.Ask{LastEventID: resume.Given("3")})
	must(t, err)
	if _, err := resume.OpenEvents(t.Context(), store, run.ID, last); !errors.Is(err, resume.ErrOver) {
		t.Errorf("the events behind the end: %v", err)
	}
	if _, err := resume.Open(t.Context(), store, run.ID, resume.FromPosition(4)); !errors.Is(err, buffer.ErrAhead) {
		t.Errorf("beyond the head: %v", err)
	}
	close(announce)
	must(t, errors.Join(<-appended, store.Close()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
