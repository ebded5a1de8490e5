package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api/wire"
)

type keyOfContext struct{}

// WithKey returns a context whose call has this idempotency key: 1 to 255 printable characters. A
// key names one call. An agent that restarts and makes the call again with the same key gets the
// same run; another request with it is refused.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// name is what a call is found by.
type name struct {
	key string
	run string // the run's id, where the call chooses it; else Spool does
}

// chosen is the name that the program gave the call: in a header, by WithKey or by the transport's
// Key. The first one counts. A run id in the header is its call's key.
func (t *Transport) chosen(req *http.Request) (name, bool) {
	if key := req.Header.Get(wire.HeaderKey); key != "" {
		return name{key: key, run: req.Header.Get(wire.HeaderRunID)}, true
	}
	if key, ok := req.Context().Value(keyOfContext{}).(string); ok && key != "" {
		return name{key: key, run: req.Header.Get(wire.HeaderRunID)}, true
	}
	if t.Key != nil {
		if key := t.Key(req); key != "" {
			return name{key: key, run: req.Header.Get(wire.HeaderRunID)}, true
		}
	}
	if id := req.Header.Get(wire.HeaderRunID); id != "" {
		return name{key: id, run: id}, true
	}
	return name{}, false
}

// drawn is a name by chance: a ULID that is the key and the run's id too, so that an error can tell
// the id though Spool has not answered.
func drawn() (name, error) {
	id, err := ulid.New(ulid.Timestamp(time.Now()), rand.Reader)
	if err != nil {
		return name{}, fmt.Errorf("spool: draw a key: %w", err)
	}
	return name{key: id.String(), run: id.String()}, nil
}
