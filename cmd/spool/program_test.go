package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spool-dev/spool/test/fakellm"
	"github.com/spool-dev/spool/test/servers"
)

// The scripts of testdata/script run the program itself, as a shell does.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"spool": func() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

func TestProgram(t *testing.T) {
	quick := fakellm.Start(t, fakellm.Config{Text: "one two three", Every: time.Millisecond})
	slow := fakellm.Start(t, fakellm.Config{Every: time.Second}) // its sixty words outlast every script
	steady := fakellm.Start(t, fakellm.Config{Every: 30 * time.Millisecond})
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("QUICK", quick.URL)
			env.Setenv("SLOW", slow.URL)
			config := fmt.Sprintf("providers:\n  p: {dialect: openai_chat, base_url: '%s'}\n", steady.URL)
			return errors.Join(setUp(env), os.WriteFile(env.Cd+"/steady.yaml", []byte(config), 0o600))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "misuses": misuses,
			"serve": serveIt, "said": said, "asked": asked, "stops": stops, "says": says, "hup": hangsUp, "dies": dies, "unheard": unheard, "call": call, "begin": begin, "refused": refused, "exported": exported,
			"mode": mode, "remember": remember, "unchanged": unchanged, "store": store, "nats": runServer(t), "sql": change,
		},
	})
}

// runServer is the command nats: it sets $NATS and $MONITOR to a NATS server of the test's, which flushes once an
// hour.
func runServer(t *testing.T) func(*testscript.TestScript, bool, []string) {
	srv := servers.Single(t)
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Setenv("NATS", srv.ClientURL())
		ts.Setenv("MONITOR", servers.Monitor(srv))
	}
}

// session is what the commands of one script keep between them.
type session struct {
	before string // what the folder held
	served *served
	spans  *collector
}

func of(ts *testscript.TestScript) *session { return ts.Value("session").(*session) }

// setUp gives the script $TAKEN, an address that somebody else listens on, and traced.yaml, with which spans
// are exported.
func setUp(env *testscript.Env) error {
	spans := newCollector()
	env.Defer(spans.Close)
	traced := fmt.Sprintf("telemetry: {otlp_endpoint: '%s'}\n", spans.URL)
	if err := os.WriteFile(env.Cd+"/traced.yaml", []byte(traced), 0o600); err != nil {
		return err
	}
	env.Values["session"] = &session{spans: spans}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Defer(func() { l.Close() })
	env.Setenv("TAKEN", l.Addr().String())
	return nil
}

// exits CODE COMMAND… runs a command that must end with the code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = e.ExitCode(), nil
	}
	ts.Check(err)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("it exits with %d, want %s", code, args[0])
	}
}

// refuses PATTERN COMMAND… runs a command that must end with 1 and one line on stderr, which the
// pattern matches. It leaves the script's folder as it was.
func refuses(ts *testscript.TestScript, _ bool, args []string) { complains(ts, "1", args) }

// misuses is refuses for what must end with 2.
func misuses(ts *testscript.TestScript, _ bool, args []string) { complains(ts, "2", args) }

func complains(ts *testscript.TestScript, code string, args []string) {
	remember(ts, false, nil)
	exits(ts, false, append([]string{code}, args[1:]...))
	line := ts.ReadFile("stderr")
	if !strings.HasPrefix(line, "spool: ") || strings.Count(line, "\n") != 1 || !matches(ts, args[0], line) {
		ts.Fatalf("want one line that matches %q, got %q", args[0], line)
	}
	unchanged(ts, false, nil)
}

func matches(ts *testscript.TestScript, pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	return re.MatchString(text)
}
