package jetstream

import (
	"errors"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/servers"
)

// alone is a node with a log of one replica.
func alone(t *testing.T) *Store {
	t.Helper()
	urls := servers.Single(t).ClientURL()
	if err := initLog(t, urls, Layout{Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, urls, Config{Lease: patient, UnsafeDurability: true})
	t.Cleanup(func() {
		_ = s.Close() // it never fails
		wantSound(t, urls, DefaultName)
	})
	return s
}

// What was stored although its acknowledgement was lost is found, also under what others have stored
// since, and not stored twice.
func TestPublish_FindsOutWhatALostAcknowledgementMeant(t *testing.T) {
	s := alone(t)
	_, r := begun(t, s, "")
	before, err := s.load(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	d := draft{record: s.moved(before.record, buffer.Streaming, buffer.Closing{}), chunks: [][]byte{chunk(0)}}
	first, err := s.commit(t.Context(), before, d, "lost")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, nonce string
		since       func() error
		want        error
	}{
		{"it is the last", "lost", func() error { return nil }, nil},
		{"another's came instead", "another", func() error { return nil }, errConflict},
		{"the run was sealed since", "lost", func() error {
			_, err := s.Seal(t.Context(), r.ID, buffer.Cancelled, buffer.CancelAsked)
			return err
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := row.since(); err != nil {
				t.Fatal(err)
			}
			again, err := s.commit(t.Context(), before, d, row.nonce)
			if !errors.Is(err, row.want) || err == nil && again.seq != first.seq {
				t.Fatalf("stored at %d, then at %d; error %v", first.seq, again.seq, err)
			}
		})
	}
	if got := wantWhole(t, s, r.ID, 1); got.Head != 1 {
		t.Fatalf("run has %d chunks, want 1", got.Head)
	}
}

// A creator that died between its claim and its run leaves a key that names a run all the same.
func TestClaim_WithoutItsRunIsFulfilled(t *testing.T) {
	s := alone(t)
	r := buffer.Run{ID: ulid.Make(), Caller: "agent", Key: "k", State: buffer.Idle, TTL: time.Hour}
	c := claim{record: record{Run: fresh(r, s.now()), Owner: "dead"}, nonce: "dead.1"}
	if _, err := s.claim(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	later := r
	later.ID = ulid.Make()
	_, held, err := s.Create(t.Context(), later)
	if !errors.Is(err, buffer.ErrExists) || held.ID != r.ID {
		t.Fatalf("the key is held by %s, want %s; error %v", held.ID, r.ID, err)
	}
	if got, err := s.Get(t.Context(), r.ID); err != nil || got.State != buffer.Idle {
		t.Fatalf("its run is %q; error %v", got.State, err)
	}
}

// A claim whose id went to another run is void: the key is free.
func TestClaim_OfATakenIDIsVoid(t *testing.T) {
	s := alone(t)
	_, other := begun(t, s, "theirs")
	r := buffer.Run{ID: other.ID, Caller: "agent", Key: "k", State: buffer.Idle}
	c := claim{record: record{Run: fresh(r, s.now()), Owner: "dead"}, nonce: "dead.1"}
	rec, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := messages(s.keySubject(r.Caller, r.Key), 0, packs(0, 0, nil, rec), envelope{Nonce: c.nonce})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.publish(t.Context(), s.layout.keys(), 0, c.nonce, msgs); err != nil {
		t.Fatal(err)
	}
	r.ID = ulid.Make()
	if _, got, err := s.Create(t.Context(), r); err != nil || got.ID != r.ID {
		t.Fatalf("the free key is held by %s; error %v", got.ID, err)
	}
}

func TestOpen_Refusals(t *testing.T) {
	urls := servers.Single(t).ClientURL()
	if _, err := Open(t.Context(), Config{Conn: dial(t, urls)}); !errors.Is(err, ErrNoLog) {
		t.Fatalf("a log that nobody has created: %v", err)
	}
	if err := initLog(t, urls, Layout{Replicas: 1, Shards: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Conn: dial(t, urls)}); !errors.Is(err, ErrUnsafe) {
		t.Fatalf("a log of one replica: %v", err)
	}
	if err := initLog(t, urls, Layout{Replicas: 1, Shards: 3}); err == nil {
		t.Fatal("the shards of a log were changed")
	}
	for _, l := range []Layout{{Name: "a.b"}, {Name: "a>"}, {Shards: -1}, {Shards: 65}, {Replicas: 6}} {
		if err := initLog(t, urls, l); err == nil {
			t.Errorf("created %+v", l)
		}
	}
}
