package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
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

// configChecked is what a check of a configuration has found. The settings are there where nothing is wrong.
type configChecked struct {
	OK       bool           `json:"ok"`
	Wrong    []string       `json:"wrong"`
	Settings map[string]any `json:"settings,omitempty"` // by their keys, without what is secret
}

type configCheckCmd struct {
	output
	File string `arg:"" optional:"" env:"SPOOL_CONFIG" help:"The file; without one, the defaults are checked."`
}

// Run prints the settings, or what is wrong, a line for each key, and fails if anything is.
func (c configCheckCmd) Run(out io.Writer) error {
	set, wrong := (&serveCmd{Config: c.File}).load()
	found := configChecked{OK: wrong == nil, Wrong: []string{}}
	text := checkedSettings + effective(set)
	if wrong != nil {
		found.Wrong = linesOf(wrong)
		text = strings.Join(found.Wrong, "\n") + "\n"
	} else if c.JSON {
		var err error
		if found.Settings, err = yaml.Parser().Unmarshal([]byte(text)); err != nil {
			return fmt.Errorf("config check: %w", err)
		}
	}
	err := c.print(out, found, func(w io.Writer) { fmt.Fprint(w, text) })
	if err == nil && wrong != nil {
		err = fmt.Errorf("config check %s: %d wrong", c.File, len(found.Wrong))
	}
	return err
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
