package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
)

type tlsSettings struct {
	Cert string `koanf:"cert" fixed:"true" help:"The certificate chain."`
	Key  string `koanf:"key" fixed:"true" holds:"secret" help:"Its private key."`
}

type corsSettings struct {
	Origins []string `koanf:"origins" help:"Like https://app.example.com, or * for every page there is; pages of any other cannot read."`
}

func (c corsSettings) validate() error {
	var all []error
	for i, o := range c.Origins {
		if o != "*" && !isOrigin(o) {
			all = append(all, fmt.Errorf("cors.origins[%d]: %q must be like https://app.example.com", i, o))
		}
	}
	return errors.Join(all...)
}

// isOrigin reports whether a text is an origin as browsers write it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == text
}

// wrap makes the listener speak TLS where there is a certificate. A handshake is answered with the one
// that the files hold by then.
func (t tlsSettings) wrap(l net.Listener, log *zap.Logger) (net.Listener, error) {
	if t.Cert == "" {
		return l, nil
	}
	c, err := readCertificate(t.Cert, t.Key, log)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.at(time.Now()), nil },
		NextProtos:     []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}), nil
}

// Defaults of what a connection may take before there is a request.
const (
	defaultHeaders     = 20 * time.Second
	defaultHeaderBytes = 1 << 20
	defaultIdle        = 2 * time.Minute
)

// checkAddress refuses what nobody can listen on, whatever the machine is.
func checkAddress(key, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // a number, or a service's name
	}
	if err != nil {
		return fmt.Errorf("%s: %q must be HOST:PORT, like 127.0.0.1:8787", key, text)
	}
	return nil
}

// listen takes the listener that was given, or else opens the address.
func listen(given net.Listener, address string) (net.Listener, error) {
	l, err := open(given, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, cause(err))
	}
	return l, nil
}

// doors are what the process listens on: the service's, and the admin listener's where there is one. Both as
// they are handed over to the next process, and as they are served here: within bounds, with TLS.
type doors struct {
	service, admin         net.Listener
	serviceEdge, adminEdge net.Listener
}

// openDoors takes what was given, and opens the rest.
func openDoors(given sockets, set settings, log *zap.Logger) (d doors, err error) {
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.service, err = listen(given.service, set.Listen); err != nil {
		return d, err
	}
	if d.admin, err = set.Admin.listen(given.admin); err != nil {
		return d, err
	}
	if d.adminEdge, err = set.Admin.edge(d.admin, set.TLS, log); err != nil {
		return d, err
	}
	d.serviceEdge, err = set.TLS.wrap(limited(d.service, set.Limits.Connections), log)
	return d, err
}

// byName are the listeners by the names of sockets.
func (d doors) byName() map[string]net.Listener {
	all := map[string]net.Listener{serviceSocket: d.service}
	if d.admin != nil {
		all[adminSocket] = d.admin
	}
	return all
}

// close closes what is still open. Who serves them has closed them already.
func (d doors) close() {
	for _, l := range d.byName() {
		if l != nil {
			_ = l.Close() // most often for the second time
		}
	}
}

// limited is l for as many connections as may be open at once: more wait in the system's backlog until one is
// closed. 0 is without limit.
func limited(l net.Listener, connections int) net.Listener {
	if connections > 0 {
		return netutil.LimitListener(l, connections)
	}
	return l
}

func open(given net.Listener, address string) (net.Listener, error) {
	if given != nil {
		return given, nil
	}
	return net.Listen("tcp", address)
}

// newServer speaks HTTP/1.1 and HTTP/2, over TLS as over plain connections: a browser has six
// connections of HTTP/1.1 for all tabs of an origin, and a stream keeps one of them.
func newServer(h http.Handler, l limitSettings, log *zap.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: h, Protocols: protocols, ErrorLog: zap.NewStdLog(log),
		ReadHeaderTimeout: cmp.Or(l.Headers, defaultHeaders), IdleTimeout: cmp.Or(l.Idle, defaultIdle),
		MaxHeaderBytes: cmp.Or(l.HeaderBytes, defaultHeaderBytes),
	}
}

// cause is the system's own word for why an address cannot be taken.
func cause(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	return err
}
