package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// served is a buffer that runs beside its script. lines has what it says after it has begun to serve,
// and is closed when it has said all.
type served struct {
	cmd   *exec.Cmd
	line  string // the one that says that it serves
	lines chan string
	log   io.Closer // this end of what it says that on
}

// linesKept is more than any script's buffer says.
const linesKept = 1000

// serve ARG… starts the buffer and waits until it serves; $ADDR is where.
func serveIt(ts *testscript.TestScript, _ bool, args []string) {
	p := &served{cmd: exec.Command("spool", append([]string{"serve"}, args...)...), lines: make(chan string, linesKept)}
	p.cmd.Dir, p.cmd.Env = ts.MkAbs("."), variables(ts)
	log, err := p.cmd.StderrPipe()
	ts.Check(err)
	p.log = log
	ts.Check(p.cmd.Start())
	lines := bufio.NewReader(log)
	for !strings.Contains(p.line, `"serving"`) {
		if p.line, err = lines.ReadString('\n'); err != nil {
			ts.Fatalf("it does not serve: %v", p.cmd.Wait())
		}
	}
	go func() {
		defer close(p.lines)
		for {
			line, err := lines.ReadString('\n')
			if err != nil { // it has ended
				return
			}
			select {
			case p.lines <- line:
			default: // nobody asks any more
			}
		}
	}()
	ts.Defer(func() { _ = p.cmd.Process.Kill() }) // it has ended already, if the script got so far
	var where struct{ Address string }
	ts.Check(json.Unmarshal([]byte(p.line), &where))
	ts.Setenv("ADDR", where.Address)
	of(ts).served = p
}

// variables are the ones that the script has set for the program, and no others.
func variables(ts *testscript.TestScript) []string {
	vars := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"LISTEN", "DATA", "PROVIDER", "CONFIG", "SYNC", "GRACE", "TTL", "LOG_LEVEL", "ADMIN_LISTEN", "ADMIN_KEY", "DIGITS", "SECRET", "STORE"} {
		if v := ts.Getenv("SPOOL_" + name); v != "" {
			vars = append(vars, "SPOOL_"+name+"="+v)
		}
	}
	return vars
}

// said PATTERN checks the line with which the running buffer says that it serves.
func said(ts *testscript.TestScript, _ bool, args []string) {
	if line := of(ts).served.line; !matches(ts, args[0], line) {
		ts.Fatalf("it said %s", line)
	}
}

// asked STATUS PATH [PATTERN] makes a request of the running buffer, and looks for the pattern in the answer.
func asked(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get("http://" + ts.Getenv("ADDR") + args[1])
	ts.Check(err)
	body, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("%s: %s, want %s", args[1], resp.Status, args[0])
	}
	if len(args) > 2 && !matches(ts, args[2], string(body)) {
		ts.Fatalf("%s: %s", args[1], body)
	}
}

// unheard leaves the running buffer without anybody who reads what it says.
func unheard(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).served.log.Close()) }

// dies ends the running buffer as kill -9 does.
func dies(ts *testscript.TestScript, _ bool, _ []string) {
	p := of(ts).served
	ts.Check(p.cmd.Process.Kill())
	for range p.lines { // until it has said all
	}
	_ = p.cmd.Wait() // killed
}

// call KEY makes a call of the running buffer's provider p, to its end; $RUN is its run.
func call(ts *testscript.TestScript, _ bool, args []string) {
	resp := begun(ts, args[0])
	_, err := io.Copy(io.Discard, resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
}

// begin KEY makes a call and leaves when its answer has begun.
func begin(ts *testscript.TestScript, _ bool, args []string) {
	resp := begun(ts, args[0])
	_, err := resp.Body.Read(make([]byte, 1))
	ts.Check(errors.Join(err, resp.Body.Close()))
}

// refused KEY makes a call that no provider answers.
func refused(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(answered(ts, args[0], http.StatusBadGateway).Body.Close())
}

func begun(ts *testscript.TestScript, key string) *http.Response {
	return answered(ts, key, http.StatusOK)
}

func answered(ts *testscript.TestScript, key string, status int) *http.Response {
	req, err := http.NewRequest(http.MethodPost, "http://"+ts.Getenv("ADDR")+"/p/v1/chat/completions", strings.NewReader(`{"model": "m", "stream": true}`))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("X-Buffer-Budget", "attempts=1")
	req.Header.Set("X-Buffer-Tag", "turn="+key)
	if credential := ts.Getenv("SPOOL_KEY"); credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	if resp.StatusCode != status {
		ts.Fatalf("the call is answered with %s, want %d", resp.Status, status)
	}
	ts.Setenv("RUN", resp.Header.Get("X-Buffer-Run-Id"))
	return resp
}

// stops ends the running buffer, which must be a clean end.
func stops(ts *testscript.TestScript, _ bool, _ []string) {
	p := of(ts).served
	ts.Check(p.cmd.Process.Signal(syscall.SIGTERM))
	for range p.lines { // until it has said all
	}
	ts.Check(p.cmd.Wait())
}

// says PATTERN… waits until the running buffer has said a line that all patterns match. What it said
// before that line is passed over.
func says(ts *testscript.TestScript, _ bool, args []string) {
	patience := time.After(time.Minute)
	for {
		select {
		case line, ok := <-of(ts).served.lines:
			switch {
			case !ok:
				ts.Fatalf("it has ended without %q", args)
			case !slices.ContainsFunc(args, func(pattern string) bool { return !matches(ts, pattern, line) }):
				return
			}
		case <-patience:
			ts.Fatalf("it does not say %q", args)
		}
	}
}

// hangsUp sends the running buffer SIGHUP.
func hangsUp(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(of(ts).served.cmd.Process.Signal(syscall.SIGHUP))
}
