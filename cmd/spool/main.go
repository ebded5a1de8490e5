// Command spool is the durable stream buffer: it stands between agents and LLM providers, owns the
// provider's connection and lets every reader come back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

type cli struct {
	Serve serveCmd `cmd:"" default:"withargs" help:"Run the buffer."`

	Runs   runsCmd   `cmd:"" help:"List runs, newest first."`
	Show   showCmd   `cmd:"" help:"Print one run, with its ledger."`
	Tail   tailCmd   `cmd:"" help:"Read a run's answer, what is stored and then live, to its end. Cut connections are repaired."`
	Cancel cancelCmd `cmd:"" help:"Stop a run's call to its provider. What is stored stays readable."`
	Ack    ackCmd    `cmd:"" help:"Release an ended run's answer, which nobody can read again."`
	Token  tokenCmd  `cmd:"" help:"Mint a token that reads one run, for a page."`

	Check   checkCmd   `cmd:"" help:"Verify the stored invariants of a data folder, stopped or running."`
	Backup  backupCmd  `cmd:"" help:"Copy the log of a data folder, stopped or running, and check the copy."`
	Restore restoreCmd `cmd:"" help:"Make a data folder of a backup, checked before and after."`
	Compact compactCmd `cmd:"" help:"Give the room of what was deleted back to the file system. The buffer must be stopped."`

	Cluster clusterCmd `cmd:"" help:"Set up the log of more than one node."`

	Config configCmd `cmd:"" help:"Check a configuration, or print all that there is to configure."`
	Doctor doctorCmd `cmd:"" help:"Look for what would keep a buffer from working well on this machine."`
	Bench  benchCmd  `cmd:"" help:"Measure in some seconds what a disk and this machine carry."`
	Health healthCmd `cmd:"" help:"Ask a running buffer whether it is ready."`

	Completion completionCmd `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its edges as arguments. It returns the exit code: 0 for a clean end, 1 for a
// refusal or a finding, which is one line on stderr, 2 for a misuse.
func run(args []string, stdout, stderr io.Writer) int {
	code := -1
	parser, err := newParser(stdout, stderr, func(n int) { code = n })
	if err != nil {
		fmt.Fprintln(stderr, "spool:", err)
		return 2
	}
	ctx, err := parser.Parse(args)
	if code >= 0 { // help or the version was asked for and printed
		return code
	}
	if err != nil {
		fmt.Fprintln(stderr, "spool:", err)
		return 2
	}
	if err := ctx.Run(); err != nil {
		fmt.Fprintln(stderr, "spool:", strings.TrimPrefix(oneLine(err), "spool: ")) // as the client's errors begin
		if _, ok := errors.AsType[misuse](err); ok {
			return 2
		}
		return 1
	}
	return 0
}

// misuse is an error of who asks: a wrong command line, variable or setting, which would be wrong on any machine
// and at any time.
type misuse struct{ error }

// Unwrap gives the error that it is.
func (e misuse) Unwrap() error { return e.error }

// asMisuse makes a misuse of an error; nil stays nil.
func asMisuse(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

func misused(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

func newParser(stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Name("spool"),
		kong.Description("A durable stream buffer between AI agents and LLM providers. Without a command it serves."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.BindToProvider(untilSignal),
		kong.Vars{"version": builtFrom().String()},
	)
}

// untilSignal is the context of a command that is ended by a signal, and then tidies up.
func untilSignal() (context.Context, error) {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM) // it ends with the process
	return ctx, nil
}

// oneLine makes one line of an error that has several, as decoders' lists of findings and joined
// errors do.
func oneLine(err error) string {
	var out strings.Builder
	for line := range strings.Lines(err.Error()) {
		line = strings.Trim(line, " *\t\n")
		switch {
		case line == "":
			continue
		case strings.HasSuffix(out.String(), ":"):
			out.WriteString(" ")
		case out.Len() > 0:
			out.WriteString("; ")
		}
		out.WriteString(line)
	}
	return out.String()
}

type versionCmd struct{ output }

type built struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// Run prints the version and what it was built from.
func (c versionCmd) Run(out io.Writer) error {
	b := builtFrom()
	return c.print(out, b, func(w io.Writer) { fmt.Fprintln(w, b) })
}

func builtFrom() built {
	b := built{Version: version}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Go = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

// String is one line: the version, the revision where it is known, and Go's version.
func (b built) String() string {
	return strings.Join(slices.DeleteFunc([]string{"spool", b.Version, b.Revision, b.Go}, func(s string) bool { return s == "" }), " ")
}
