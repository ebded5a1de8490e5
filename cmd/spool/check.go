package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spool-dev/spool/buffer/sqlite"
)

type checkCmd struct {
	Data string `arg:"" help:"The data folder." type:"path" env:"SPOOL_DATA"`
}

// Run prints what is broken, a line each, and fails if there is anything.
func (c checkCmd) Run(out io.Writer) error {
	broken, err := sqlite.Check(context.Background(), c.Data)
	if err != nil {
		return fmt.Errorf("check %s: %w", c.Data, err)
	}
	for _, line := range broken {
		fmt.Fprintln(out, line)
	}
	if len(broken) > 0 {
		return fmt.Errorf("check %s: %d broken", c.Data, len(broken))
	}
	_, err = fmt.Fprintln(out, "ok: every stored invariant holds")
	return err
}
