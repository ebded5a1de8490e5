package sqlite

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
)

// The run that a key names is the one that holds it, whatever the clock said when it was made.
func TestList_KeyNamesItsHolderAcrossAClockThatSteppedBack(t *testing.T) {
	now := time.Now()
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // what the test wants to know it has read by then
	first := buffer.Run{ID: ulid.ULID{1}, Caller: "c", Key: "k", State: buffer.Idle, Dialect: provider.OpenAIChat, TTL: time.Hour}
	log, _, err := s.Create(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), nil, buffer.Failed, buffer.Closing{Reason: buffer.Refused}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	next := first
	next.ID, next.RetryOf = ulid.ULID{2}, first.ID
	if _, _, err := s.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	var found []ulid.ULID
	for r, err := range s.List(t.Context(), buffer.Filter{Caller: "c", Key: "k"}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r.ID)
	}
	if len(found) != 1 || found[0] != next.ID {
		t.Errorf("the key names %v, want its holder %v alone", found, next.ID)
	}
}
