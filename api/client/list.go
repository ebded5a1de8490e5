package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spool-dev/spool/api/wire"
)

// Filter chooses runs. Its zero value is all of the caller's.
type Filter struct {
	State string // one of the states of docs/protocol.md, section 3; empty for any
	Tag   string // name=value; empty for any
	Key   string // an idempotency key: the one run that it names now; empty for any
	Page  int    // runs that one request asks for, at most 500; default Spool's own, 50
}

// List yields the caller's runs, newest first, asking for the next page when it is wanted. An error
// is the last that it yields.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[wire.Run, error] {
	return func(yield func(wire.Run, error) bool) {
		query := f.query()
		for {
			page, err := c.page(ctx, query)
			if err != nil {
				yield(wire.Run{}, err)
				return
			}
			for _, run := range page.Runs {
				if !yield(run, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

func (c *Client) page(ctx context.Context, query url.Values) (wire.RunList, error) {
	var page wire.RunList
	l, err := c.link()
	if err == nil {
		err = l.json(ctx, http.MethodGet, query, &page, "runs")
	}
	return page, err
}

func (f Filter) query() url.Values {
	q := url.Values{}
	if f.State != "" {
		q.Set("state", f.State)
	}
	if f.Tag != "" {
		q.Set("tag", f.Tag)
	}
	if f.Key != "" {
		q.Set("key", f.Key)
	}
	if f.Page != 0 {
		q.Set("limit", strconv.Itoa(f.Page))
	}
	return q
}
