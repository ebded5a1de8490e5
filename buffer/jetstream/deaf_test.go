package jetstream

import (
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// A node that hears of no commits reads what others have stored all the same.
func TestRead_AsksTheLeaderWhereNobodyTells(t *testing.T) {
	s := alone(t)
	log, r := begun(t, s, "")
	cfg, err := Config{Conn: dial(t, s.nc.ConnectedUrl())}.complete()
	if err != nil {
		t.Fatal(err)
	}
	deaf := newStore(cfg) // it follows no stream
	defer deaf.Close()    // it never fails
	deaf.layout = s.layout
	if _, err := deaf.load(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), [][]byte{chunk(0)}, buffer.Streaming, buffer.Closing{}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		knows bool
		want  int
	}{{false, 0}, {true, 1}} {
		deaf.deaf[s.layout.shard(r.ID)].Store(row.knows)
		page, err := deaf.Read(t.Context(), r.ID, 0, 1)
		if err != nil || len(page.Chunks) != row.want {
			t.Errorf("knowing that it is not told: %t, it reads %d chunks; error %v", row.knows, len(page.Chunks), err)
		}
	}
}
