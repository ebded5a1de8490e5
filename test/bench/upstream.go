package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/spool-dev/spool/test/fakellm"
)

const anyPort = "127.0.0.1:0"

// provider is the scripted provider as a process.
func provider(ctx context.Context) error {
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		return err
	}
	s := fakellm.On(narrow{l}, fakellm.Config{})
	defer s.Close()
	if err := announce(s.Addr()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// sendBuffer is what a provider's socket holds back, in bytes. Left to itself the kernel takes megabytes
// for each stream, and a measurement of a thousand of them would be one of how fast those fill.
const sendBuffer = 32 << 10

// narrow is a listener whose connections hold little.
type narrow struct{ net.Listener }

// Accept implements net.Listener.
func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // where it cannot be set, only the flood is larger
	}
	return c, err
}

// proxy is what Spool is compared with: it passes every read on at once and keeps nothing.
func proxy(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("proxy: want an address and the provider's URL, have %q", args)
	}
	upstream, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		FlushInterval: -1,
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024},
		ErrorLog:      log.New(io.Discard, "", 0), // clients that leave are part of the plan
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else net/http closes the request's body with the first byte of the answer, which may be
		// before the transport has seen that body's end, and then the answer is cut.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1.1 always can
		forward.ServeHTTP(w, r)
	})}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })() // over either way
	if err := announce(l.Addr().String()); err != nil {
		return err
	}
	if err := srv.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// announce tells the bench the address, in the way in which Spool's own log does.
func announce(address string) error {
	return json.NewEncoder(os.Stderr).Encode(announcement{Address: address})
}

type announcement struct {
	Address string `json:"address"`
}
