package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// pemPair is a certificate for the loopback, known by its serial number, and its key, as PEM.
func pemPair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// renewed puts a file in the place of another, as those who renew certificates do.
func renewed(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestCertificate_IsThatOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	firstCert, firstKey := pemPair(t, 1)
	secondCert, secondKey := pemPair(t, 2)
	renewed(t, cert, firstCert)
	renewed(t, key, firstKey)
	core, logged := observer.New(zapcore.WarnLevel)
	c, err := readCertificate(cert, key, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, step := range []struct {
		name   string
		change func()
		after  time.Duration
		serial int64
		warned int
	}{
		{"as it was read", func() {}, certificateLook, 1, 0},
		{"half renewed", func() { renewed(t, cert, secondCert) }, certificateLook, 1, 1},
		{"still half renewed", func() {}, certificateLook, 1, 1},
		{"renewed, within a look", func() { renewed(t, key, secondKey) }, 0, 1, 1},
		{"renewed", func() {}, certificateLook, 2, 1},
		{"gone", func() { removed(t, cert) }, certificateLook, 2, 1},
		{"broken", func() { renewed(t, cert, []byte("nothing")) }, certificateLook, 2, 2},
		{"back again", func() { renewed(t, cert, firstCert); renewed(t, key, firstKey) }, certificateLook, 1, 2},
	} {
		step.change()
		now = now.Add(step.after)
		if got := c.at(now).Leaf.SerialNumber.Int64(); got != step.serial {
			t.Errorf("%s: certificate %d, want %d", step.name, got, step.serial)
		}
		if logged.Len() != step.warned {
			t.Errorf("%s: %d warnings, want %d: %v", step.name, logged.Len(), step.warned, logged.All())
		}
	}
}

func removed(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A listener that was never closed hands out the renewed certificate; who is connected stays so.
func TestTLS_RenewedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	set := tlsSettings{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	install := func(serial int64) {
		cert, key := pemPair(t, serial)
		renewed(t, set.Cert, cert)
		renewed(t, set.Key, key)
	}
	install(1)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := set.wrap(plain, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	echoed := make(chan struct{})
	go func() { defer close(echoed); echo(l) }()
	t.Cleanup(func() { l.Close(); <-echoed })

	connect := func() (*tls.Conn, int64) {
		conn, err := tls.Dial("tcp", plain.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	before, serial := connect()
	if serial != 1 {
		t.Fatalf("certificate %d at the start", serial)
	}
	install(2)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for _, serial = connect(); serial != 2; _, serial = connect() { // the test's own deadline ends it
		<-again.C
	}
	if _, err := before.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(before, make([]byte, 1)); err != nil {
		t.Error("the connection of before:", err)
	}
}

// echo gives every connection back what it sends, until the listener and they are closed.
func echo(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // ends with its client
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func TestTLS_FilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	cert, key := pemPair(t, 1)
	_, other := pemPair(t, 2)
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		renewed(t, path, content)
		return path
	}
	good, fits, wrong, empty := write("cert", cert), write("key", key), write("other", other), write("empty", nil)
	for name, set := range map[string]tlsSettings{
		"no certificate":  {Cert: filepath.Join(dir, "missing"), Key: fits},
		"no key":          {Cert: good, Key: filepath.Join(dir, "missing")},
		"another's key":   {Cert: good, Key: wrong},
		"an empty file":   {Cert: empty, Key: fits},
		"the wrong order": {Cert: fits, Key: good},
	} {
		if l, err := set.wrap(nil, zap.NewNop()); err == nil {
			t.Errorf("%s: %v", name, l)
		}
	}
}
