package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
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
	if inUse, err := interfacesInUse(); err != nil || len(inUse) > 0 {
		t.Errorf("interfaces %v (%v), want lo alone", inUse, err)
	}
	sizes, err := os.ReadFile(receiveFile)
	if have := strings.Join(strings.Fields(string(sizes)), " "); err != nil || have != receiveSizes {
		t.Errorf("receive buffers %q (%v), want %q", have, err, receiveSizes)
	}
}

func TestNetwork_OfTheMachineIsLeftAlone(t *testing.T) {
	before, err := os.ReadFile(receiveFile)
	if err != nil {
		t.Fatal(err)
	}
	if inUse, err := interfacesInUse(); err != nil || len(inUse) == 0 {
		t.Skipf("this machine has nothing but its loopback: %v", err)
	}
	if settleNetwork() == nil {
		t.Error("the machine's network was settled")
	}
	if after, err := os.ReadFile(receiveFile); err != nil || string(after) != string(before) {
		t.Errorf("receive buffers were %q and are %q (%v)", before, after, err)
	}
}

func TestEnclose_PassesOnHowTheProgramEnded(t *testing.T) {
	if errors.Is(enclose(t.Context(), "true", nil), exitStatus(noNetwork)) {
		t.Skip("this machine permits no namespaces, and the bench says so")
	}
	for _, tt := range []struct {
		name, script string
		want         error
	}{
		{"success", "exit 0", nil},
		{"a status", "exit 7", exitStatus(7)},
		{"no network", "exit 3", exitStatus(noNetwork)},
		{"knows where it is", `[ "$` + networkEnv + `" = own ]`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := enclose(t.Context(), "sh", []string{"-c", tt.script}); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEnclose_EndsTheProgramWithItsContext(t *testing.T) {
	if errors.Is(enclose(t.Context(), "true", nil), exitStatus(noNetwork)) {
		t.Skip("this machine permits no namespaces, and the bench says so")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := enclose(ctx, "sleep", []string{"60"})
	if err == nil || errors.Is(err, exitStatus(noNetwork)) || time.Since(began) > 30*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

func TestEnclose_AContextThatHasEndedIsNoMissingNetwork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := enclose(ctx, "true", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
