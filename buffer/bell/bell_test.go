package bell

import (
	"testing"

	"github.com/oklog/ulid/v2"
)

// A bell that nobody watches any more is not kept.
func TestBells_AreForgotten(t *testing.T) {
	b := New()
	id := ulid.Make()
	_, stop := b.Watch(id)
	rung, stopToo := b.Watch(id)
	stop()
	stop()
	b.Ring(id)
	<-rung
	stopToo()
	again, stop := b.Watch(id)
	b.RingAll()
	<-again
	stop()
	if len(b.of) != 0 {
		t.Fatalf("%d bells are kept", len(b.of))
	}
	b.Close()
	late, stop := b.Watch(id)
	defer stop()
	<-late
}
