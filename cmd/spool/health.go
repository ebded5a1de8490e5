package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

type healthCmd struct {
	URL string `name:"url" default:"http://127.0.0.1:8787" env:"SPOOL_URL,SPOOL_HEALTH_URL" help:"Base URL of the buffer."`
}

// Run asks a running buffer whether it takes new runs, and fails if it does not say so within a
// few seconds. It is the container's health check.
func (c healthCmd) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
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
