package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spool-dev/spool/buffer"
)

// pageRuns are on one page.
const pageRuns = 50

// row is one run of the table.
type row struct {
	buffer.Run
	Phase   string
	Readers int
}

func (c *Console) row(run buffer.Run) row {
	r := row{Run: run, Readers: c.Runs.Readers(run.ID)}
	if run.State == buffer.Idle {
		r.Phase = c.Runs.Phase(run.ID)
	}
	return r
}

// Saved is how many repeats bought nothing.
func (r row) Saved() int64 { return r.Replays + r.Attaches }

// SavedTokens is what they would have bought, in output tokens.
func (r row) SavedTokens() int64 {
	if r.Usage == nil {
		return 0
	}
	return r.Saved() * r.Usage.OutputTokens
}

// TagList is the run's tags in the order of their names.
func (r row) TagList() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Tags)) {
		all = append(all, name+"="+r.Tags[name])
	}
	return all
}

// runTable is the table and what is around it.
type runTable struct {
	Viewer    Viewer
	Filter    filter
	Rows      []row
	Next      string // the query of the next page; empty at the end
	Source    string // where the part that moves comes from
	States    []buffer.State
	Providers []string // that are known, for the field
	Live      int      // runs of this page
}

// First is the query of the first page.
func (t runTable) First() string { return t.Filter.query("") }

// Summary says in a sentence what the table shows.
func (t runTable) Summary() string {
	var s strings.Builder
	switch n := len(t.Rows); {
	case n == 0 && t.Filter.Active():
		return "No run matches."
	case n == 0:
		return "No runs yet."
	case n == 1:
		s.WriteString("1 run")
	default:
		fmt.Fprintf(&s, "%d runs", n)
	}
	if t.Next != "" {
		s.WriteString(" and more")
	}
	if t.Live > 0 {
		fmt.Fprintf(&s, ", %d live", t.Live)
	}
	return s.String() + "."
}

// states are those that a viewer may ask for, in the order of a run's life.
var states = []buffer.State{buffer.Idle, buffer.Streaming, buffer.Completed, buffer.Interrupted, buffer.Cancelled, buffer.Failed, buffer.Released}

func (c *Console) runs(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if !v.lists() {
		http.Redirect(w, r, "/ui/runs/"+v.Run.String()+v.query(), http.StatusSeeOther)
		return nil
	}
	f := filterOf(r.URL.Query(), v)
	if id, ok := f.named(); ok {
		http.Redirect(w, r, "/ui/runs/"+id.String(), http.StatusSeeOther)
		return nil
	}
	t, err := c.tabled(r.Context(), v, f)
	if err != nil {
		return err
	}
	return c.show(w, "runs", page{Title: "Runs", Viewer: v, Body: t})
}

func (c *Console) table(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if !v.lists() {
		return errNoPage
	}
	t, err := c.tabled(r.Context(), v, filterOf(r.URL.Query(), v))
	if err != nil {
		return err
	}
	return c.part(w, r, "runs", "table", t)
}

// tabled is one page of the runs.
func (c *Console) tabled(ctx context.Context, v Viewer, f filter) (runTable, error) {
	t := runTable{Viewer: v, Filter: f, States: states, Providers: c.Providers, Source: "/ui/table" + f.query(f.After)}
	want := f.stored(v)
	want.Limit = pageRuns + 1 // the last one says that there are more
	for run, err := range c.Store.List(ctx, want) {
		if err != nil {
			return t, err
		}
		if len(t.Rows) == pageRuns {
			t.Next = f.query(t.Rows[pageRuns-1].ID.String())
			break
		}
		t.Rows = append(t.Rows, c.row(run))
		if run.State.Live() {
			t.Live++
		}
	}
	return t, nil
}
