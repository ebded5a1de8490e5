//go:build browser

package browser

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build builds the service and returns its path.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "spool")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/spool")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// serve starts the service and returns its address, once it serves. It is killed with the test: its
// readers are pages that do not leave.
func serve(t *testing.T, bin string, args ...string) string {
	t.Helper()
	return served(t, bin, args...).Address
}

// where is what the service says of its listeners when it serves.
type where struct{ Msg, Address, Admin string }

// served is serve, with the address of the admin listener.
func served(t *testing.T, bin string, args ...string) where {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"serve", "--listen", "127.0.0.1:0", "--sync", "normal", "--data", t.TempDir()}, args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()                          // by that signal
	})
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("spool does not serve: %s", line)
		}
		var said where
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, lines) }() // until it has ended
			return said
		}
		if strings.HasPrefix(line, "spool:") {
			t.Fatal(line)
		}
	}
}

// certificate makes a certificate for the loopback that nobody has signed but its own key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
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
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}
