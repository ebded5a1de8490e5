package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever a new process does but say that it is ready, it is gone then, and there is a reason.
func TestSuccessor_NotReadyIsGoneWithAReason(t *testing.T) {
	for name, test := range map[string]struct {
		script   string
		patience time.Duration
		want     string
	}{
		"ends":            {"exit 3", time.Minute, "without a word: exit status 3"},
		"ends well":       {"exit 0", time.Minute, "without a word"},
		"says why":        {"echo 'listen: no such address' >&3; exit 1", time.Minute, "listen: no such address"},
		"says another":    {"echo almost ready >&3; exec sleep 1000", time.Minute, "almost ready"},
		"closes the pipe": {"exec 3>&-; exec sleep 1000", time.Minute, "without a word: signal: killed"},
		"is never ready":  {"exec sleep 1000", time.Millisecond, "not ready after 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			pid, err := successor{program: "/bin/sh", args: []string{"-c", test.script}}.start(t.Context(), test.patience)
			if err == nil || !strings.Contains(err.Error(), test.want) || pid != 0 {
				t.Errorf("process %d, %v; want %q", pid, err, test.want)
			}
		})
	}
	if _, err := (successor{program: filepath.Join(t.TempDir(), "missing")}).start(t.Context(), time.Minute); err == nil {
		t.Error("a program that is missing was started")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (successor{program: "/bin/sh", args: []string{"-c", "exec sleep 1000"}}).start(ctx, time.Minute); err == nil {
		t.Error("it waits though it was told to stop")
	}
}

// The listener that is handed over still hears of its own Close: its descriptor was not made to wait in the kernel.
func TestSuccessor_AListenerStaysAsItWas(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	go func() { _, err := l.Accept(); accepted <- err }()
	next := successor{program: "/bin/sh", args: []string{"-c", "echo ready >&4"}, listeners: map[string]net.Listener{serviceSocket: l}}
	if pid, err := next.start(t.Context(), time.Minute); err != nil || pid == 0 {
		t.Fatal(pid, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err == nil {
		t.Error("a connection came")
	}
}

// Both sockets of systemd go to the new process, which is the main one from then on; the old one ends.
func TestUpgrade_SystemdFollowsTheMainProcess(t *testing.T) {
	cmd, addresses, heard := underSystemd(t, "admin", "spool")
	lines := startAndHear(t, cmd)
	wantHeard(t, heard, ready)
	if err := cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	n, err := heard.Read(b)
	pid, number := strings.CutPrefix(string(b[:n]), "MAINPID=")
	next, err2 := strconv.Atoi(pid)
	if err != nil || !number || err2 != nil || next == cmd.Process.Pid {
		t.Fatalf("the supervisor heard %q, %v", b[:n], err)
	}
	t.Cleanup(func() { _ = syscall.Kill(next, syscall.SIGKILL) }) // as well
	for i, want := range []int{http.StatusOK, http.StatusNotFound} {
		resp, err := http.Get("http://" + addresses[i] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("socket %d: %s, want %d", i, resp.Status, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, lines, `"stopped"`)
	if err := syscall.Kill(next, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantHeard(t, heard, stopping)
	if text, err := io.ReadAll(lines); err != nil || !strings.Contains(string(text), `"stopped"`) {
		t.Errorf("the new process said %s, %v", text, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the old process: %v", err)
	}
}

// A new process that refuses its settings changes nothing, and the old one says what is wrong with them.
func TestUpgrade_BadSettingsChangeNothing(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ttl: 1h\n")
	cmd, lines := serveConfigured(t, config, filepath.Join(dir, "data"))
	until(t, lines, `"serving"`)
	write("tttl: 1h\n")
	if err := cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	if line := until(t, lines, "upgrade failed, nothing has changed"); !strings.Contains(line, "tttl") {
		t.Errorf("it does not say why: %s", line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, lines, `"stopped"`)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// serveConfigured starts a buffer with a configuration and a data folder. lines are what it says.
func serveConfigured(t *testing.T, config, data string) (cmd *exec.Cmd, lines *bufio.Reader) {
	t.Helper()
	cmd = exec.Command("spool", "serve", "--config", config, "--listen", "127.0.0.1:0", "--data", data)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return cmd, startAndHear(t, cmd)
}

// startAndHear starts a process, which ends with the test at the latest. lines are what it says on stderr.
func startAndHear(t *testing.T, cmd *exec.Cmd) (lines *bufio.Reader) {
	t.Helper()
	all, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended already, if the test got so far
	return bufio.NewReader(all)
}

// until reads to the line that holds text.
func until(t *testing.T, lines *bufio.Reader, text string) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("it has ended without %s: %v", text, err)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}
