package buffer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
)

func TestPlaces_TellWhereEachReaderIs(t *testing.T) {
	rs := &Runs{places: newPlaces()}
	one, two := ulid.MustNew(1, nil), ulid.MustNew(2, nil)
	check := func(id ulid.ULID, want ...int64) {
		t.Helper()
		if diff := cmp.Diff(want, rs.Places(id)); diff != "" {
			t.Error("places (-want +got)\n", diff)
		}
	}
	check(one)
	slow, slowLeaves := rs.Place(one)
	fast, fastLeaves := rs.Place(one)
	_, otherLeaves := rs.Place(two)
	slow(3)
	fast(9)
	check(one, 9, 3)
	check(two, 0)
	fastLeaves()
	check(one, 3)
	slowLeaves()
	otherLeaves()
	check(one)
	if n := len(rs.places.by); n != 0 {
		t.Errorf("%d runs are remembered, want none", n)
	}
}
