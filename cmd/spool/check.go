package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spool-dev/spool/buffer/sqlite"
)

type checkCmd struct {
	Data string `arg:"" help:"The data folder." type:"path" env:"SPOOL_DATA"`
	output
}

// checked is what a check has found.
type checked struct {
	OK     bool     `json:"ok"`
	Broken []string `json:"broken"`
}

// Run prints what is broken, a line each, and fails if there is anything.
func (c checkCmd) Run(ctx context.Context, out io.Writer) error {
	broken, err := sqlite.Check(ctx, c.Data)
	if err != nil {
		return fmt.Errorf("check %s: %w", c.Data, err)
	}
	err = c.print(out, checked{len(broken) == 0, append([]string{}, broken...)}, func(w io.Writer) {
		for _, line := range broken {
			fmt.Fprintln(w, line)
		}
		if len(broken) == 0 {
			fmt.Fprintln(w, "ok: every stored invariant holds")
		}
	})
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("check %s: %d broken", c.Data, len(broken))
	}
	return err
}
