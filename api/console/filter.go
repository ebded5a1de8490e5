package console

import (
	"net/url"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// filter is what a viewer looks for among the runs, as the query of the page says it. What is not
// understood does not filter: it stands in its field, where the viewer sees it.
type filter struct {
	State    string
	Provider string
	Caller   string // for viewers of all callers
	Tag      string // name=value, or a value alone
	After    string // the run after which the page begins
}

func filterOf(q url.Values, v Viewer) filter {
	f := filter{State: q.Get("state"), Provider: q.Get("provider"), Tag: strings.TrimSpace(q.Get("tag")), After: q.Get("after")}
	if v.All {
		f.Caller = q.Get("caller")
	}
	return f
}

// named is the run whose id stands where tags are looked for.
func (f filter) named() (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(strings.ToUpper(f.Tag))
	return id, err == nil
}

// stored is the filter as the store knows it.
func (f filter) stored(v Viewer) buffer.Filter {
	out := buffer.Filter{Caller: v.Caller, Provider: f.Provider}
	if v.All {
		out.Caller = f.Caller
	}
	if s := buffer.State(f.State); s.Known() {
		out.State = s
	}
	name, value, pair := strings.Cut(f.Tag, "=")
	switch {
	case pair:
		out.TagName, out.TagValue = name, value
	default:
		out.TagValue = f.Tag
	}
	if id, err := ulid.ParseStrict(f.After); err == nil {
		out.Before = id
	}
	return out
}

// query is the filter as the query of a page that begins after a run.
func (f filter) query(after string) string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "provider": f.Provider, "caller": f.Caller, "tag": f.Tag, "after": after} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Active reports whether anything is looked for.
func (f filter) Active() bool { return f.query("") != "" }
