package main

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// underSystemd is the program as a socket unit starts it: with open listeners, one for each name, and
// with a socket that hears what it says. The shell knows the process's number, which sd_listen_fds(3) asks for.
func underSystemd(t *testing.T, names ...string) (cmd *exec.Cmd, addresses []string, heard *net.UnixConn) {
	t.Helper()
	dir := t.TempDir()
	notified := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	heard, err := net.ListenUnixgram("unixgram", notified)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { heard.Close() })
	cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec spool serve --data "$0"`, filepath.Join(dir, "data"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "NOTIFY_SOCKET=" + notified.Name,
		"LISTEN_FDS=" + strconv.Itoa(len(names)), "LISTEN_FDNAMES=" + strings.Join(names, ":"),
	}
	for range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(); file.Close() })
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		addresses = append(addresses, l.Addr().String())
	}
	return cmd, addresses, heard
}

func wantHeard(t *testing.T, heard *net.UnixConn, want string) {
	t.Helper()
	b := make([]byte, 256)
	n, err := heard.Read(b)
	if got := string(b[:n]); err != nil || got != want {
		t.Fatalf("the supervisor heard %q, %v; want %q", got, err, want)
	}
}

func TestSystemd_SocketsAreServedAndTheSupervisorIsTold(t *testing.T) {
	cmd, addresses, heard := underSystemd(t, "admin", "spool")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended already, if the test got so far
	wantHeard(t, heard, ready)
	for i, want := range []int{http.StatusOK, http.StatusNotFound} { // only the admin listener has them
		resp, err := http.Get("http://" + addresses[i] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("socket %d: %s, want %d", i, resp.Status, want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantHeard(t, heard, stopping)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestSystemd_TwoSocketsOfOneNameAreRefused(t *testing.T) {
	cmd, _, _ := underSystemd(t, "spool", "spool")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // an empty line says it
	if !strings.HasPrefix(line, "spool: LISTEN_FDS: 2 sockets") {
		t.Errorf("it says %q", line)
	}
	if e, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || e.ExitCode() != 1 {
		t.Errorf("it ends with %v", e)
	}
	if _, err := os.Stat(cmd.Args[len(cmd.Args)-1]); !errors.Is(err, os.ErrNotExist) {
		t.Error("the data folder was touched:", err)
	}
}
