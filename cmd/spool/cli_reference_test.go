package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const cliReference = "../../docs/cli.md"

// docs/cli.md is what the command line is made of: go test ./cmd/spool -run Reference -update writes it.
func TestReference_IsTheCommandLine(t *testing.T) {
	parser, err := newParser(io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	want := document(parser.Model)
	if *update {
		if err := os.WriteFile(cliReference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(cliReference); string(got) != want {
		t.Errorf("%s is not what the command line is (%v): go test ./cmd/spool -run Reference -update", cliReference, err)
	}
}

const preface = `# The command line

Made of the program by ` + "`go test ./cmd/spool -run Reference -update`" + `; ` + "`spool COMMAND --help`" + ` says the same.

A flag outranks its variable. Results are on stdout, as JSON with ` + "`--json`" + `; one line that says what went wrong is on
stderr, and a progress bar where that is a terminal. Exit codes: 0 for a clean end, 1 for a refusal or a finding, 2 for a
command line, a variable or a setting that would be wrong on any machine and at any time.
`

func document(app *kong.Application) string {
	var b strings.Builder
	b.WriteString(preface)
	for _, c := range app.Children {
		command(&b, "##", c)
	}
	return b.String()
}

// command documents a command, and those that it has of its own.
func command(b *strings.Builder, heading string, c *kong.Node) {
	fmt.Fprintf(b, "\n%s spool %s\n\n%s\n", heading, c.Path(), c.Help)
	if len(c.Positional)+len(c.Flags) > 0 {
		b.WriteString("\n| | variable | default | |\n| --- | --- | --- | --- |\n")
	}
	for _, a := range c.Positional {
		row(b, a.Summary(), a)
	}
	for _, f := range c.Flags {
		name := "--" + f.Name
		if !f.IsBool() {
			name += " " + f.FormatPlaceHolder()
		}
		row(b, name, f.Value)
	}
	for _, sub := range c.Children {
		command(b, heading+"#", sub)
	}
}

func row(b *strings.Builder, name string, v *kong.Value) {
	var envs []string
	for _, env := range v.Tag.Envs {
		envs = append(envs, "`"+env+"`")
	}
	value := ""
	if v.HasDefault && v.Default != "" {
		value = "`" + v.Default + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), strings.Join(envs, ", "), value, strings.ReplaceAll(v.Help, "|", `\|`))
}
