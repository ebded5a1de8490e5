package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

type doctorCmd struct {
	Serve     serveCmd `embed:""` // its flags: what is looked at is what serve would do with them
	Providers bool     `help:"Ask whether each provider's base URL can be reached. Nothing is sent but a GET without a key."`
	output
}

// level says how bad a finding is.
type level string

const (
	good level = "ok"
	warn level = "warn" // it works, but not as well as it could, or not for long
	fail level = "fail" // it does not work
)

// finding is one line of the doctor's.
type finding struct {
	Level  level  `json:"level"`
	Check  string `json:"check"` // what was looked at
	Detail string `json:"detail"`
}

func found(l level, check, format string, args ...any) finding {
	return finding{l, check, fmt.Sprintf(format, args...)}
}

// Run looks at the configuration, the machine and the folder, and changes none of them. It fails where
// a finding does; warnings are no failure.
func (c doctorCmd) Run(ctx context.Context, app *kong.Kong) error {
	set, err := c.Serve.load()
	all := configFindings(c.Serve.Config, set, err)
	all = append(all, clockFindings()...)
	all = append(all, openFiles())
	if set.Store.URL == "" {
		all = append(all, folderFindings(ctx, set)...)
	} else if err == nil {
		all = append(all, storeFindings(ctx, set.Store)...)
	}
	if c.Providers && err == nil {
		all = append(all, providerFindings(ctx, set)...)
	}
	count := map[level]int{}
	for _, f := range all {
		count[f.Level]++
	}
	err = c.print(app.Stdout, all, func(w io.Writer) {
		for _, f := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Check, f.Detail)
		}
	})
	if err == nil && count[fail] > 0 {
		err = fmt.Errorf("doctor: %d of %d checks failed, %d warn", count[fail], len(all), count[warn])
	}
	return err
}
