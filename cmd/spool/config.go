package main

import (
	"fmt"
	"io"
	"strings"
)

type configCmd struct {
	Check     configCheckCmd     `cmd:"" help:"Check a file, and print the settings that it makes, without secrets."`
	Reference configReferenceCmd `cmd:"" help:"Print every key with its default and its meaning, as a file."`
}

// checkedSettings says above good settings what was looked at.
const checkedSettings = `# Checked, and nothing is wrong: every key is known and its value allowed, providers and their fallbacks fit
# together, and encryption keys can be read. These settings hold; what the file does not say is a default.
# spool doctor looks at the certificate, the folder and the machine.
`

type configCheckCmd struct {
	File string `arg:"" optional:"" env:"SPOOL_CONFIG" help:"The file; without one, the defaults are checked."`
}

// Run prints the settings, or what is wrong, a line for each key, and fails if anything is.
func (c configCheckCmd) Run(out io.Writer) error {
	set, err := (&serveCmd{Config: c.File}).load()
	if err == nil {
		_, err = io.WriteString(out, checkedSettings+effective(set))
		return err
	}
	findings := linesOf(err)
	for _, line := range findings {
		fmt.Fprintln(out, line)
	}
	return fmt.Errorf("config check %s: %d wrong", c.File, len(findings))
}

// linesOf is an error's findings. A line that only says that more follow is none.
func linesOf(err error) (all []string) {
	for line := range strings.Lines(err.Error()) {
		line = strings.Trim(line, " *\t\n")
		if line != "" && !strings.HasSuffix(line, ":") {
			all = append(all, line)
		}
	}
	return all
}

type configReferenceCmd struct{}

// Run prints the reference.
func (configReferenceCmd) Run(out io.Writer) error {
	text, err := reference()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
