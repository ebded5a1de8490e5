package jetstream

import (
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// A claim has the first row of its run's ledger in it: a run that somebody else creates from it is not one
// of which nothing was sent.
func TestClaim_HasTheFirstAttempt(t *testing.T) {
	s := alone(t)
	_, r, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), Caller: "agent", Key: "k", State: buffer.Idle, Attempts: []buffer.Attempt{{N: 1}}})
	if err != nil || r.Sends != 1 {
		t.Fatalf("created with %d sends; error %v", r.Sends, err)
	}
	m, err := s.fromLeader(t.Context(), s.layout.keys(), get{Last: s.keySubject("agent", "k")})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := (pack{envelope: m.envelope, body: m.body}).record()
	if err != nil || len(claimed.Run.Attempts) != 1 || !claimed.Run.Attempts[0].Sent.Equal(r.Created) {
		t.Fatalf("the claim has the rows %v; error %v", claimed.Run.Attempts, err)
	}
	if _, _, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle, Attempts: []buffer.Attempt{{N: 0}}}); err == nil {
		t.Fatal("attempt 0 was taken")
	}
}
