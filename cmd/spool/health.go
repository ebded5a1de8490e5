package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

type healthCmd struct {
	URL     baseURL `name:"url" env:"SPOOL_URL,SPOOL_HEALTH_URL" placeholder:"URL" help:"Base URL of the buffer. Without one, that of a buffer on this machine which has the settings below (default http://127.0.0.1:8787)."`
	Config  string  `env:"SPOOL_CONFIG" placeholder:"FILE" help:"The buffer's file, for its listen and tls."`
	Listen  string  `env:"SPOOL_LISTEN" placeholder:"ADDR" help:"The address that it serves on."`
	TLSCert string  `name:"tls-cert" env:"SPOOL_TLS_CERT" placeholder:"FILE" help:"It serves TLS. The file is not read: whoever answers on this machine's own address is believed."`
	output
}

// healthPatience is how long the answer may take.
const healthPatience = 3 * time.Second

// Run asks a running buffer whether it takes new runs, and fails if it does not say so within a
// few seconds. It is the container's health check, and so goes by the settings that the buffer goes by.
func (c healthCmd) Run(ctx context.Context, out io.Writer) error {
	base, client := c.URL, http.DefaultClient
	if base == "" {
		var err error
		if base, err = c.own(); err != nil {
			return err
		}
		// The certificate is for the names by which others come. Nothing is sent that anybody could want.
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	if err := ask(ctx, client, base); err != nil {
		return err
	}
	return c.print(out, struct {
		Ready bool `json:"ready"`
	}{true}, func(io.Writer) {}) // the exit code says it
}

// Validate is the command line's.
func (c healthCmd) Validate() error { return c.URL.check() }

// own is where a buffer with these settings is reached from its own machine.
func (c healthCmd) own() (baseURL, error) {
	// A mistake in the file is no matter: what runs has read it before it was made, and would not listen elsewhere.
	set, _ := (&serveCmd{Config: c.Config, Listen: c.Listen, TLSCert: c.TLSCert}).merge()
	if err := checkAddress("listen", set.Listen); err != nil {
		return "", misuse{err}
	}
	addr, err := net.ResolveTCPAddr("tcp", set.Listen)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	if addr.Port == 0 {
		return "", misused("listen: %q has no port that is known before: give --url", set.Listen)
	}
	return baseURL(base(addr, set.TLS)), nil
}

func ask(ctx context.Context, client *http.Client, base baseURL) error {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(string(base), "/")+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz: %s", base, resp.Status)
	}
	return nil
}
