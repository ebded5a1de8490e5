package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer/jetstream"
	"github.com/spool-dev/spool/buffer/sqlite"
)

type checkCmd struct {
	Data string `arg:"" optional:"" help:"The data folder." type:"path" env:"SPOOL_DATA"`
	storeFlags
	keyed
	output
}

// checked is what a check has found.
type checked struct {
	OK     bool     `json:"ok"`
	Broken []string `json:"broken"`

	Unread map[string]int64 `json:"unread,omitempty"` // the keys that were not given, and how many runs need each
}

// Validate is the command line's.
func (c checkCmd) Validate() error {
	if (c.Store == "") == (c.Data == "") {
		return errors.New("give a data folder or --store, one of the two")
	}
	return nil
}

// Run prints what is broken, a line each, and fails if there is anything.
func (c checkCmd) Run(ctx context.Context, app *kong.Kong) error {
	_, done := progress(app.Stderr, "check", false) // how long it takes nobody knows before
	what, found, err := c.look(ctx)
	done()
	if err != nil {
		return fmt.Errorf("check %s: %w", what, err)
	}
	err = c.print(app.Stdout, found, func(w io.Writer) {
		for _, line := range found.Broken {
			fmt.Fprintln(w, line)
		}
		if found.OK {
			fmt.Fprintln(w, "ok: every stored invariant holds")
		}
		if len(found.Unread) > 0 {
			fmt.Fprintf(w, "not decrypted: the bytes of runs whose keys were not given, or are others of that name: %s; --config names the file with encryption.keys\n", needed(found.Unread))
		}
	})
	if err == nil && !found.OK {
		err = fmt.Errorf("check %s: %d broken", what, len(found.Broken))
	}
	return err
}

// look checks the cluster's log, or the folder's, and says which it was.
func (c checkCmd) look(ctx context.Context) (what string, found checked, err error) {
	if c.Store == "" {
		found, err = c.lookInto(ctx)
		return c.Data, found, err
	}
	set, err := c.settings()
	if err != nil {
		return c.Store, found, err
	}
	err = set.connected(func(nc *nats.Conn) error {
		broken, err := jetstream.Check(ctx, nc, set.Name)
		found = checked{OK: len(broken) == 0, Broken: append([]string{}, broken...)}
		return err
	})
	return set.where(), found, err
}

// lookInto checks the folder.
func (c checkCmd) lookInto(ctx context.Context) (found checked, err error) {
	keys, err := c.keys()
	if err != nil {
		return found, err
	}
	broken, err := sqlite.Check(ctx, c.Data, keys...)
	if err != nil {
		return found, err
	}
	found = checked{OK: len(broken) == 0, Broken: append([]string{}, broken...)}
	if about, err := sqlite.Look(ctx, c.Data, keys...); err == nil { // a damaged log has been told of
		found.Unread = about.Lacking
	}
	return found, nil
}
