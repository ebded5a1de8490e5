package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

type healthCmd struct {
	URL string `name:"url" default:"http://127.0.0.1:8787" env:"SPOOL_URL,SPOOL_HEALTH_URL" placeholder:"URL" help:"Base URL of the buffer."`
	output
}

// Run asks a running buffer whether it takes new runs, and fails if it does not say so within a
// few seconds. It is the container's health check.
func (c healthCmd) Run(ctx context.Context, out io.Writer) error {
	if err := c.ask(ctx); err != nil {
		return err
	}
	return c.print(out, struct {
		Ready bool `json:"ready"`
	}{true}, func(io.Writer) {}) // the exit code says it
}

func (c healthCmd) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz: %s", c.URL, resp.Status)
	}
	return nil
}
