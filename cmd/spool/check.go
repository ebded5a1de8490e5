package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer/jetstream"
	"github.com/spool-dev/spool/buffer/sqlite"
)

type checkCmd struct {
	Data string `arg:"" optional:"" help:"The data folder." type:"path" env:"SPOOL_DATA"`
	storeFlags
	output
}

// checked is what a check has found.
type checked struct {
	OK     bool     `json:"ok"`
	Broken []string `json:"broken"`
}

// Validate is the command line's.
func (c checkCmd) Validate() error {
	if c.Store == "" && c.Data == "" {
		return errors.New("give a data folder, or --store")
	}
	return nil
}

// Run prints what is broken, a line each, and fails if there is anything.
func (c checkCmd) Run(ctx context.Context, out io.Writer) error {
	what, broken, err := c.look(ctx)
	if err != nil {
		return fmt.Errorf("check %s: %w", what, err)
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
		err = fmt.Errorf("check %s: %d broken", what, len(broken))
	}
	return err
}

// look checks the cluster's log, or the folder's, and says which it was.
func (c checkCmd) look(ctx context.Context) (what string, broken []string, err error) {
	if c.Store == "" {
		broken, err = sqlite.Check(ctx, c.Data)
		return c.Data, broken, err
	}
	set, err := c.settings()
	if err != nil {
		return c.Store, nil, err
	}
	err = set.connected(func(nc *nats.Conn) (err error) {
		broken, err = jetstream.Check(ctx, nc, set.Name)
		return err
	})
	return set.where(), broken, err
}
