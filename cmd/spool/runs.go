package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/buffer"
)

type runsCmd struct {
	source
	output
	State  string `enum:",idle,streaming,completed,interrupted,cancelled,failed,released" default:"" placeholder:"STATE" help:"Only runs in this state: idle, streaming, completed, interrupted, cancelled, failed or released."`
	Tag    string `placeholder:"NAME=VALUE" help:"Only runs with this tag."`
	Of     string `name:"idempotency-key" placeholder:"KEY" help:"Only the run that this idempotency key names."`
	Caller string `placeholder:"NAME" help:"Only runs of this caller; with --data or --store, since a buffer shows its caller's own runs alone."`
	Limit  int    `default:"50" placeholder:"N" help:"How many at most; 0 is all."`
}

// listed is a run in a list. Only a log tells its caller.
type listed struct {
	shown
	Caller string `json:"caller,omitempty"`
}

// Run prints runs, newest first.
func (c runsCmd) Run(ctx context.Context, out io.Writer) error {
	name, value, isPair := strings.Cut(c.Tag, "=")
	switch {
	case c.Limit < 0:
		return misused("--limit: %d must not be negative; 0 is all", c.Limit)
	case c.Tag != "" && (!isPair || name == ""):
		return misused("--tag: %q must be NAME=VALUE", c.Tag)
	case c.Caller != "" && c.asks():
		return misused("--caller: a buffer shows its caller's own runs alone; read its folder with --data, or its cluster with --store")
	}
	all := []listed{}
	err := c.each(ctx, buffer.Filter{
		State: buffer.State(c.State), TagName: name, TagValue: value, Key: c.Of, Caller: c.Caller, Limit: c.Limit,
	}, func(l listed) bool {
		all = append(all, l)
		return c.Limit == 0 || len(all) < c.Limit
	})
	if err != nil {
		return err
	}
	return c.print(out, all, func(w io.Writer) { table(w, all, time.Now()) })
}

// each yields runs until one is enough.
func (c runsCmd) each(ctx context.Context, f buffer.Filter, yield func(listed) bool) error {
	if c.asks() {
		return c.act(ctx, func(ctx context.Context, b *client.Client) error {
			for run, err := range b.List(ctx, client.Filter{State: c.State, Tag: c.Tag, Key: c.Of, Page: min(cmp.Or(c.Limit, 500), 500)}) {
				if err != nil || !yield(listed{shown: shown{Run: run}}) {
					return err
				}
			}
			return nil
		})
	}
	return c.fromLog(ctx, func(r reading) error {
		for run, err := range r.List(ctx, f) {
			if err != nil {
				return err
			}
			if !yield(listed{shown{api.WireRun(run, "", 0), run.EncryptedWith}, run.Caller}) {
				return nil
			}
		}
		return nil
	})
}

func table(w io.Writer, all []listed, now time.Time) {
	fmt.Fprintln(w, "run\tstate\tprovider\tmodel\tage\tchunks\tbytes\ttokens\tkey\ttags\tcaller")
	for _, r := range all {
		tokens := "-"
		if r.Usage != nil {
			tokens = fmt.Sprint(r.Usage.OutputTokens)
		}
		var tags []string
		for _, name := range slices.Sorted(maps.Keys(r.Tags)) {
			tags = append(tags, name+"="+r.Tags[name])
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.ID, words(r.State, r.Phase, r.Reason), r.Provider, plain(r.Model),
			now.Sub(r.Created).Round(time.Second), r.Head, r.Bytes, tokens, plain(r.Key), plain(strings.Join(tags, " ")), plain(r.Caller))
	}
}
