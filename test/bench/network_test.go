package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestNetwork_OfItsOwnIsUsableAndReceivesLittleAhead runs the test below in one.
func TestNetwork_OfItsOwnIsUsableAndReceivesLittleAhead(t *testing.T) {
	if os.Getenv(networkEnv) == ownNetwork {
		inOwnNetwork(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), networkEnv+"="+ownNetwork)
	cmd.SysProcAttr = newNetwork()
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine permits no namespaces, and the bench says so")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func inOwnNetwork(t *testing.T) {
	if err := settleNetwork(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) != 1 {
		t.Errorf("interfaces %v (%v), want lo alone", interfaces, err)
	}
	sizes, err := os.ReadFile(receiveFile)
	if have := strings.Join(strings.Fields(string(sizes)), " "); err != nil || have != receiveSizes {
		t.Errorf("receive buffers %q (%v), want %q", have, err, receiveSizes)
	}
}
