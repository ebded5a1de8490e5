package jetstream

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/test/servers"
)

// An answer that went with its connection is not waited for: the question is asked again at once.
func TestOnce_EndsWithTheConnection(t *testing.T) {
	server := servers.Single(t)
	cfg, err := Config{Conn: dial(t, server.ClientURL())}.complete()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(cfg)
	defer s.Close() // it never fails
	silent := dial(t, server.ClientURL())
	defer silent.Close()
	asked := make(chan struct{}, 1)
	if _, err := silent.Subscribe("question", func(*nats.Msg) { asked <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if err := silent.Flush(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.once(t.Context(), &nats.Msg{Subject: "question"}, time.Hour)
		ended <- err
	}()
	<-asked
	id, err := s.nc.GetClientID()
	if err == nil {
		err = server.DisconnectClientByID(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("nobody has answered")
		}
		if err := s.rest(t.Context(), err); err != nil {
			t.Errorf("it is not to be asked again: %v", err)
		}
	case <-time.After(patient):
		t.Fatal("it waits for what cannot come")
	}
}
