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
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// process is a program that runs beside the test. It is killed with the test: its readers are pages that
// do not leave.
type process struct {
	cmd    *exec.Cmd
	said   string        // what it had to say before it was of use
	exited chan struct{} // closed when it has ended
	last   string        // its last line, once it has ended
}

// start starts a program and returns when find makes something of a line that it prints.
func start(t *testing.T, cmd *exec.Cmd, find func(line string) string) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout // the same pipe
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan string, 1)
	go p.follow(out, find, said)
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
	})
	select {
	case p.said = <-said:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended: %s", cmd.Path, p.last)
	}
}

// follow reads what the program prints until it has ended.
func (p *process) follow(out io.Reader, find func(string) string, said chan<- string) {
	defer close(p.exited)
	found := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.last = lines.Text()
		if what := find(p.last); what != "" && !found {
			found = true
			said <- what
		}
	}
	_ = p.cmd.Wait() // whoever needed the program notices that it has gone
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended

// serve starts the service on a folder. It says its address, once it serves.
func serve(t *testing.T, bin, data string, args ...string) (*process, error) {
	return start(t, exec.Command(bin, append([]string{"serve", "--listen", "127.0.0.1:0", "--sync", "normal", "--data", data}, args...)...), address)
}

func address(line string) string {
	var said struct{ Msg, Address string }
	if json.Unmarshal([]byte(line), &said) != nil || said.Msg != "serving" {
		return "" // a line about something else
	}
	return said.Address
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
