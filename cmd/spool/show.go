package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

type showCmd struct {
	ID   string `arg:"" help:"The run's id."`
	URL  string `name:"url" default:"http://127.0.0.1:8787" env:"SPOOL_URL" help:"Base URL of the buffer."`
	Key  string `env:"SPOOL_KEY" help:"The caller's credential: a buffer key, or the key that made the run."`
	JSON bool   `name:"json" help:"Print the run as JSON."`
}

// Run asks a running buffer for one run and prints it with its ledger: which route and model made
// how much, and why each step was taken.
func (c showCmd) Run(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+"/runs/"+c.ID, http.NoBody)
	if err != nil {
		return err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var p wire.Problem
		if json.Unmarshal(body, &p) == nil && p.Code == wire.CodeNotFound && c.Key == "" {
			return fmt.Errorf("run %s: %s; runs are shown to their caller alone: give its credential with --key", c.ID, p.Detail)
		}
		if json.Unmarshal(body, &p) == nil && p.Code != "" {
			return fmt.Errorf("run %s: %s: %s", c.ID, p.Code, p.Detail)
		}
		return fmt.Errorf("run %s: %s", c.ID, resp.Status)
	}
	if c.JSON {
		_, err = out.Write(body)
		return err
	}
	var run wire.Run
	if err := json.Unmarshal(body, &run); err != nil {
		return fmt.Errorf("run %s: %w", c.ID, err)
	}
	return show(out, run)
}

// show prints a run for people.
func show(out io.Writer, r wire.Run) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("run", "%s", r.ID)
	row("state", "%s", words(r.State, r.Phase, r.Reason, strings.Join(r.Notes, " ")))
	row("call", "%s %s%s (%s, model %s)", r.Method, r.Provider, r.Path, r.Dialect, r.Model)
	row("created", "%s", r.Created.Format(time.RFC3339))
	if r.Ended != nil {
		row("ended", "%s, after %s", r.Ended.Format(time.RFC3339), r.Ended.Sub(r.Created))
	}
	row("stored", "%d chunks, %d bytes, %d readers", r.Head, r.Bytes, r.Readers)
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
	if err := w.Flush(); err != nil {
		return err
	}
	return ledger(out, r.Attempts)
}

// ledger prints the attempts, a line each.
func ledger(out io.Writer, attempts []wire.Attempt) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nn\troute\tmodel\tstatus\tclass\tsent\tbilled\taction\tpreamble\tcontent\tout\ttook\twhy")
	for _, a := range attempts {
		took, tokens := "open", "-"
		if a.EndedAt != nil {
			took = a.EndedAt.Sub(a.SentAt).Round(time.Millisecond).String()
		}
		if a.Usage != nil {
			tokens = fmt.Sprint(a.Usage.OutputTokens)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", a.N, a.Route, a.Model, a.Status,
			a.Class, a.Sent, a.Billed, a.Action, a.PreambleBytes, a.ContentBytes, tokens, took, a.Why)
	}
	return w.Flush()
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
