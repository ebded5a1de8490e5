package main

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/spool-dev/spool/api/wire"
)

// hold opens streams that fall silent after their first event, and asks what each of them costs in
// memory. One stream is open before the counting begins, so that what the first one costs is not
// shared out among the rest.
func (j job) hold(ctx context.Context) (o outcome, err error) {
	cs := j.clients(new(atomic.Bool))
	lead, err := cs[0].open(ctx)
	if err != nil {
		return o, err
	}
	defer lead.Body.Close()
	if _, err := io.ReadFull(lead.Body, make([]byte, eventSize)); err != nil {
		return o, err
	}
	if j.Kind == tailer {
		for _, c := range cs {
			c.method, c.url = http.MethodGet, j.Base+"/runs/"+lead.Header.Get(wire.HeaderRunID)+"/resume"
		}
	}
	if err := pause(ctx, settle); err != nil {
		return o, err
	}
	before, err := residentAll(j.Targets)
	if err != nil {
		return o, err
	}

	f := repeated(ctx, cs)
	defer f.land()
	if err := f.opened(ctx, holdLimit); err != nil {
		return o, err
	}
	if err := pause(ctx, settle); err != nil {
		return o, err
	}
	after, err := residentAll(j.Targets)
	f.land()
	o.sum(cs)
	o.Resident = float64(after-before) / float64(len(cs))
	return o, err
}
