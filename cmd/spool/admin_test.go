package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
)

// The admin listener speaks TLS with the certificate of the other one where it is told to, and there alone.
func TestAdmin_SpeaksTLSWhereItIsTold(t *testing.T) {
	dir := t.TempDir()
	pair := tlsSettings{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	cert, key := pemPair(t, 1)
	renewed(t, pair.Cert, cert)
	renewed(t, pair.Key, key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for scheme, a := range map[string]adminSettings{
		"https://": {Listen: "127.0.0.1:0", TLS: true},
		"http://":  {Listen: "127.0.0.1:0"},
	} {
		bare, err := a.listen(nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := descriptor(bare); err != nil {
			t.Errorf("%s: it cannot be handed over: %v", scheme, err)
		} else {
			_ = f.Close() // it was only asked for
		}
		l, err := a.edge(bare, pair, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		h := newAdminServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }), zap.NewNop())
		go func() { _ = h.Serve(l) }() // it ends with Close
		resp, err := client.Get(scheme + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if (resp.TLS != nil) != a.TLS || a.TLS && resp.ProtoMajor != 2 {
			t.Errorf("%s: %s, TLS %v", scheme, resp.Proto, resp.TLS != nil)
		}
		_ = resp.Body.Close() // what was asked is in its head
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	if _, err := (adminSettings{TLS: true}).edge(bare, tlsSettings{Cert: "nowhere", Key: "nowhere"}, zap.NewNop()); err == nil {
		t.Error("it is served without a certificate")
	}
	if err := (settings{Sync: "full", TTL: 1, LogLevel: "info", Admin: adminSettings{TLS: true}}).validate(); err == nil {
		t.Error("admin.tls without a certificate is no mistake")
	}
}
