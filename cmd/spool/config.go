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

type configCheckCmd struct {
	File string `arg:"" optional:"" env:"SPOOL_CONFIG" help:"The file; without one, the defaults are checked."`
}

// Run prints the settings, or what is wrong, a line for each key, and fails if anything is.
func (c configCheckCmd) Run(out io.Writer) error {
	set, err := (&serveCmd{Config: c.File}).load()
	if err == nil {
		_, err = io.WriteString(out, effective(set))
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
