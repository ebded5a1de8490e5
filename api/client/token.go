package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spool-dev/spool/api/wire"
)

// Token mints a run token: it reads one run, until its time is over, and does nothing else. Whoever
// has it can use it, so it is for pages, which must not have a key.
func (c *Client) Token(ctx context.Context, id string, asked wire.TokenRequest) (wire.Token, error) {
	var token wire.Token
	l, err := c.link()
	if err != nil {
		return token, err
	}
	if err := named(id); err != nil {
		return token, err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return token, fmt.Errorf("spool: %w", err)
	}
	resp, err := l.send(ctx, http.MethodPost, nil, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body), "runs", id, "token")
	if err != nil {
		return token, err
	}
	return token, decode(resp, &token)
}
