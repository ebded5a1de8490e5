package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spool-dev/spool/buffer/sqlite"
)

type checkCmd struct {
	Data string `arg:"" help:"The data folder." type:"path" env:"SPOOL_DATA"`
	keyed
	output
}

// checked is what a check has found.
type checked struct {
	OK     bool     `json:"ok"`
	Broken []string `json:"broken"`

	Unread map[string]int64 `json:"unread,omitempty"` // the keys that were not given, and how many runs need each
}

// Run prints what is broken, a line each, and fails if there is anything.
func (c checkCmd) Run(ctx context.Context, out io.Writer) error {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	broken, err := sqlite.Check(ctx, c.Data, keys...)
	if err != nil {
		return fmt.Errorf("check %s: %w", c.Data, err)
	}
	var unread map[string]int64
	if about, err := sqlite.Look(ctx, c.Data); err == nil { // a damaged log has been told of
		unread = missing(about.Keys, keys)
	}
	err = c.print(out, checked{len(broken) == 0, append([]string{}, broken...), unread}, func(w io.Writer) {
		for _, line := range broken {
			fmt.Fprintln(w, line)
		}
		if len(broken) == 0 {
			fmt.Fprintln(w, "ok: every stored invariant holds")
		}
		if len(unread) > 0 {
			fmt.Fprintf(w, "not decrypted: the bytes of runs whose keys were not given: %s; --config names the file with encryption.keys\n", needed(unread))
		}
	})
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("check %s: %d broken", c.Data, len(broken))
	}
	return err
}
