package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

type showCmd struct {
	ID runID `arg:"" help:"The run's id."`
	source
	output
}

// Run prints one run with its ledger: which route and model made how much, and why each step was taken.
func (c showCmd) Run(ctx context.Context, out io.Writer) error {
	run, err := c.run(ctx, c.ID)
	if err != nil {
		return err
	}
	return c.print(out, run, func(w io.Writer) { show(w, run) })
}

// show prints a run for people.
func show(w io.Writer, r shown) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, plain(fmt.Sprintf(format, args...)))
	}
	row("run", "%s", r.ID)
	row("state", "%s", words(r.State, r.Phase, r.Reason, strings.Join(r.Notes, " ")))
	row("call", "%s %s%s (%s, model %s)", r.Method, r.Provider, r.Path, r.Dialect, r.Model)
	row("created", "%s", r.Created.Format(time.RFC3339))
	if r.Ended != nil {
		row("ended", "%s, after %s", r.Ended.Format(time.RFC3339), r.Ended.Sub(r.Created))
	}
	row("stored", "%d chunks, %d bytes, %d readers", r.Head, r.Bytes, r.Readers)
	if r.EncryptedWith != "" {
		row("encrypted", "with the key %s", r.EncryptedWith)
	}
	if r.Operation != "" {
		row("operation", "%s", r.Operation)
	}
	if r.RetryOf != "" {
		row("retry of", "%s", r.RetryOf)
	}
	if r.Usage != nil {
		row("usage", "%d in, %d out, %d in all", r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.TotalTokens)
	}
	row("saved", "%d output tokens, %d replays, %d attaches", r.Saved.OutputTokens, r.Saved.Replays, r.Saved.Attaches)
	ledger(w, r.Attempts)
}

// ledger prints the attempts, a line each.
func ledger(w io.Writer, attempts []wire.Attempt) {
	fmt.Fprintln(w, "\nn\troute\tmodel\tstatus\tclass\tsent\tbilled\taction\tpreamble\tcontent\tout\ttook\twhy")
	for _, a := range attempts {
		took, tokens := "open", "-"
		if a.EndedAt != nil {
			took = a.EndedAt.Sub(a.SentAt).Round(time.Millisecond).String()
		}
		if a.Usage != nil {
			tokens = fmt.Sprint(a.Usage.OutputTokens)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", a.N, a.Route, plain(a.Model), a.Status,
			a.Class, a.Sent, a.Billed, a.Action, a.PreambleBytes, a.ContentBytes, tokens, took, plain(a.Why))
	}
}

func words(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ", ")
}
