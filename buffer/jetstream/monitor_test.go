package jetstream

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/servers"
)

// What a server is set to is what it says itself, and a log is opened only where all of them flush.
func TestFlushing_IsSeenAndRefusedElse(t *testing.T) {
	lazy, c := servers.Single(t), servers.Start(t)
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	if err := Flushing(t.Context(), []string{servers.Monitor(lazy)}); !errors.Is(err, ErrLazy) {
		t.Errorf("a server that flushes each hour: %v", err)
	}
	if err := Flushing(t.Context(), []string{none.URL}); err == nil || errors.Is(err, ErrLazy) {
		t.Errorf("what is no server: %v", err)
	}
	if err := Flushing(t.Context(), c.Monitors()); err != nil {
		t.Errorf("servers that flush always: %v", err)
	}
	for _, flushes := range []bool{false, true} {
		if err := initLog(t, c.URLs(), Layout{Flushes: flushes}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Config{Conn: dial(t, c.URLs())})
		if flushes == (err != nil) || !flushes && !errors.Is(err, ErrLazy) {
			t.Errorf("a log whose servers flush: %t; error %v", flushes, err)
		}
		if err == nil {
			_ = s.Close() // it never fails
		}
	}
}

// A reader reads what the nodes store, and is none of them.
func TestReader_IsNoNode(t *testing.T) {
	s := alone(t)
	log, r := begun(t, s, "key")
	if err := log.Append(t.Context(), [][]byte{chunk(0)}, buffer.Streaming, buffer.Closing{}); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReader(t.Context(), dial(t, s.nc.ConnectedUrl()), "")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() // it never fails
	page, err := reader.Read(t.Context(), r.ID, 0, 1)
	if err != nil || len(page.Chunks) != 1 || string(page.Chunks[0].Data) != string(chunk(0)) {
		t.Fatalf("read %v; error %v", page.Chunks, err)
	}
	living, err := s.living(t.Context())
	if err != nil || len(living) != 1 {
		t.Fatalf("the nodes are %v; error %v", living, err)
	}
}

func TestDial_RefusesWhatIsNoAddress(t *testing.T) {
	for _, text := range []string{"", "http://127.0.0.1:4222", "nats://", "127.0.0.1:4222", "nats://a:4222,b", "nats://a:4222/path", "nats://user:password@a:4222"} {
		if nc, err := Dial(Access{URL: text}); err == nil {
			nc.Close()
			t.Errorf("connected to %q", text)
		}
	}
}
