// Command spool is the durable stream buffer: it stands between agents and LLM providers, owns the
// provider's connection and lets every reader come back.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

type cli struct {
	Serve   serveCmd   `cmd:"" default:"withargs" help:"Run the buffer."`
	Check   checkCmd   `cmd:"" help:"Verify the stored invariants of a data folder, stopped or running."`
	Health  healthCmd  `cmd:"" help:"Ask a running buffer whether it is ready."`
	Show    showCmd    `cmd:"" help:"Print one run of a running buffer, with its ledger."`
	Version versionCmd `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its edges as arguments. It returns the exit code: 0 for a clean end, 1 for a
// refusal or a finding, which is one line on stderr, 2 for a wrong command line.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	code := -1
	parser, err := kong.New(&c,
		kong.Name("spool"),
		kong.Description("A durable stream buffer between AI agents and LLM providers. Without a command it serves."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(n int) { code = n }),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Vars{"version": builtFrom()},
	)
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
		fmt.Fprintln(stderr, "spool:", oneLine(err))
		return 1
	}
	return 0
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

type versionCmd struct{}

// Run prints the version and what it was built from.
func (versionCmd) Run(out io.Writer) error {
	_, err := fmt.Fprintln(out, builtFrom())
	return err
}

// builtFrom is one line: the version, the revision where it is known, and Go's version.
func builtFrom() string {
	words := []string{"spool", version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				words = append(words, s.Value)
			}
		}
		words = append(words, info.GoVersion)
	}
	return strings.Join(words, " ")
}
