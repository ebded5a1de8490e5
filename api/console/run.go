package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// query carries a run token on.
func (v Viewer) query() string {
	if v.Token == "" {
		return ""
	}
	return "?" + url.Values{"token": {v.Token}}.Encode()
}

// facts is the part of a run's page that moves.
type facts struct {
	row
	Viewer  Viewer
	Ledger  []send
	Line    timeline
	Readers []place
	Source  string // where this part comes from
	Moving  bool   // it may still change
}

// First is how long the first content took; below 0 where there is none.
func (f facts) First() time.Duration {
	if f.Committed.IsZero() {
		return -1
	}
	return f.Committed.Sub(f.Created)
}

// Retry reports whether the run has followed a failed one.
func (f facts) Retry() bool { return f.RetryOf != (ulid.ULID{}) }

// Leaving says what happens when the last reader leaves.
func (f facts) Leaving() string {
	switch on := f.OnDisconnect; {
	case !on.Cancel:
		return "it goes on"
	case on.After == 0:
		return "it is cancelled"
	default:
		return "it is cancelled after " + took(on.After)
	}
}

// send is a row of the ledger with what it has cost.
type send struct {
	buffer.Attempt
	Cost float64 // US dollars; 0 where it is not known
}

// Took is how long the attempt has taken; below 0 while it is open.
func (s send) Took() time.Duration {
	if s.Ended.IsZero() {
		return -1
	}
	return s.Ended.Sub(s.Sent)
}

// place is a reader's position in the run.
type place struct{ At, Head int64 }

// Behind is how many chunks the reader has yet to get.
func (p place) Behind() int64 { return max(0, p.Head-p.At) }

func (c *Console) factsOf(ctx context.Context, v Viewer, run buffer.Run) (facts, error) {
	run, err := c.Store.Get(ctx, run.ID)
	if err != nil {
		return facts{}, err
	}
	f := facts{
		row: c.row(run), Viewer: v, Line: timelineOf(run), Moving: run.State.Live() || c.Runs.Readers(run.ID) > 0,
		Source: "/ui/runs/" + run.ID.String() + "/facts" + v.query(),
	}
	for _, at := range c.Runs.Places(run.ID) {
		f.Readers = append(f.Readers, place{at, run.Head})
	}
	for _, a := range run.Attempts {
		s := send{Attempt: a}
		if a.Usage != nil {
			s.Cost = c.Price(a.Route).Of(*a.Usage)
		}
		f.Ledger = append(f.Ledger, s)
	}
	return f, nil
}

// runPage is everything about one run.
type runPage struct {
	Facts  facts
	Answer transcript
	Live   string
	Curls  []curl
}

func (c *Console) run(w http.ResponseWriter, r *http.Request, v Viewer) error {
	run, err := c.visible(r.Context(), r, v)
	if err != nil {
		return err
	}
	from := v.From
	if n, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64); err == nil {
		from = max(from, n)
	}
	p := runPage{Curls: curls(c.base(r), run)}
	if p.Answer, err = c.transcribed(r.Context(), run, from); err != nil {
		return err
	}
	if p.Facts, err = c.factsOf(r.Context(), v, run); err != nil {
		return err
	}
	p.Live = "/ui/runs/" + run.ID.String() + "/live" + v.query()
	return c.show(w, "run", page{Title: "Run " + run.ID.String(), Viewer: v, Body: p})
}

func (c *Console) facts(w http.ResponseWriter, r *http.Request, v Viewer) error {
	run, err := c.visible(r.Context(), r, v)
	if err != nil {
		return err
	}
	f, err := c.factsOf(r.Context(), v, run)
	if err != nil {
		return err
	}
	return c.part(w, r, "run", "facts", f)
}

// curl is a command that a viewer may copy. The key is the reader's own to fill in.
type curl struct{ What, Command string }

func curls(base string, run buffer.Run) []curl {
	at := func(method, path string) string {
		return `curl -sS` + method + ` -H "Authorization: Bearer $SPOOL_KEY" '` + base + "/runs/" + run.ID.String() + path + `'`
	}
	return []curl{
		{"The answer, from the first event to the end", at("N", "/resume?from=0")},
		{"Its events, for EventSource", at("N", "/events")},
		{"What became of it", at("", "")},
		{"Stop it", at(" -X POST", "/cancel")},
	}
}

// plainHost is what may stand in a command without being quoted.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.\-\[\]:]+$`)

// base is where agents reach the buffer.
func (c *Console) base(r *http.Request) string {
	switch {
	case c.Base != "":
		return c.Base
	case !plainHost.MatchString(r.Host):
		return "http://127.0.0.1:8787"
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
