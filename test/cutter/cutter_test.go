package cutter

import (
	"io"
	"net"
	"strings"
	"testing"
)

// A connection that was accepted before a drop, and led nowhere yet, is dropped too: whoever thinks that a client
// is cut off would wait in vain.
func TestDrop_TakesWhatWasJustAccepted(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close() // it was only listened on
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := target.Accept(); err == nil {
			accepted <- conn
		}
	}()
	drop := make(chan func(), 1)
	c := Start(t, "http://"+target.Addr().String(), func(int) Cut {
		(<-drop)() // the target is reached, and nobody has charge of the connections
		return Cut{}
	})
	drop <- c.Drop
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // it is dropped
	server := <-accepted
	if _, err := server.Read(make([]byte, 1)); err == nil {
		t.Error("something came from a client that said nothing")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := io.Copy(io.Discard, conn); n > 0 { // reset or ended, as it happens
		t.Errorf("%d bytes came through", n)
	}
}
