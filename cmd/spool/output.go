package main

import (
	"encoding/json"
	"io"
	"os"
	"text/tabwriter"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/spool-dev/spool/buffer/sqlite"
)

// output is how a command says what it has found: to people, or to programs.
type output struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// print writes v as JSON, or else what text writes: cells that end with a tab stand in columns.
func (o output) print(out io.Writer, v any, text func(w io.Writer)) error {
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// progress shows on a terminal how far a long work is, in bytes or in parts; and until told is called, that it goes
// on. Elsewhere it is silent, and nil. done wipes it away.
func progress(stderr io.Writer, what string, inBytes bool) (told sqlite.Progress, done func()) {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(inBytes), progressbar.OptionSetRenderBlankState(true), progressbar.OptionClearOnFinish())
	told = func(n, total int64) {
		bar.ChangeMax64(total)
		_ = bar.Set64(n) // a terminal that is gone shows nothing
	}
	return told, func() { _ = bar.Finish() }
}
