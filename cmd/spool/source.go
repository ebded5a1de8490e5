package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// patience is how long a command waits for one answer of a buffer, but for a run's.
const patience = 10 * time.Second

// remote is a running buffer, and who asks it.
type remote struct {
	URL baseURL `name:"url" default:"http://127.0.0.1:8787" env:"SPOOL_URL" placeholder:"URL" help:"Base URL of the buffer."`
	Key string  `env:"SPOOL_KEY" placeholder:"KEY" help:"The caller's credential: a buffer key, or the key that made the run."`
}

// defaultURL is where a buffer is that was told nothing.
const defaultURL baseURL = "http://127.0.0.1:8787"

// Validate is the command line's.
func (r remote) Validate() error { return r.URL.check() }

func (r remote) client() *client.Client {
	return &client.Client{BaseURL: string(cmp.Or(r.URL, defaultURL)), Credential: r.Key}
}

// act asks the buffer, patiently for each request.
func (r remote) act(ctx context.Context, ask func(context.Context, *client.Client) error) error {
	c := r.client()
	c.HTTP = &http.Client{Timeout: patience}
	return r.explain(ask(ctx, c))
}

// explain adds what a person can do about a refusal. A value that the buffer finds wrong is a misuse here too.
func (r remote) explain(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case ok && e.Code == wire.CodeNotFound && r.Key == "":
		return fmt.Errorf("%w; runs are shown to their caller alone: give its credential with --key", err)
	case ok && e.Status == http.StatusBadRequest && e.Code != "":
		return misuse{err}
	}
	return err
}

// source is where runs are read: a running buffer, or its log, whoever has it open.
type source struct {
	remote
	storeFlags
	Data string `type:"path" placeholder:"DIR" help:"Read this data folder, stopped or running, instead of asking a buffer: the runs of all callers."`
	keyed
}

// asks reports whether a buffer is asked, and no log read.
func (s source) asks() bool { return s.Data == "" && s.Store == "" }

// fromLog has read read the log.
func (s source) fromLog(ctx context.Context, read func(reading) error) error {
	r, err := s.log(ctx)
	if err != nil {
		return err
	}
	defer r.Close() // it was only read from
	return read(r)
}

// shown is a run as a command shows it. Only a folder tells what it is encrypted with.
type shown struct {
	wire.Run
	EncryptedWith string `json:"encrypted_with,omitempty"`
}

func (s source) log(ctx context.Context) (reading, error) {
	if s.Store == "" {
		keys, err := s.keys()
		if err != nil {
			return nil, err
		}
		return sqlite.OpenReader(ctx, s.Data, keys...)
	}
	set, err := s.settings()
	if err != nil {
		return nil, err
	}
	if s.Data != "" {
		return nil, misused("--data and --store: give one of them")
	}
	return set.read(ctx)
}

// run is one run with its ledger.
func (s source) run(ctx context.Context, id runID) (run shown, err error) {
	if s.asks() {
		err = s.act(ctx, func(ctx context.Context, c *client.Client) error {
			run.Run, err = c.Status(ctx, id.String())
			return err
		})
		return run, err
	}
	err = s.fromLog(ctx, func(r reading) error {
		found, err := r.Get(ctx, id.ULID)
		if err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		run = shown{api.WireRun(found, "", 0), found.EncryptedWith}
		return nil
	})
	return run, err
}

// runID is a run's id on the command line, in letters of any case.
type runID struct{ ulid.ULID }

// UnmarshalText reads one.
func (id *runID) UnmarshalText(text []byte) (err error) {
	if id.ULID, err = ulid.ParseStrict(strings.ToUpper(string(text))); err != nil {
		return fmt.Errorf("%q must be a run's id: 26 letters and digits", text)
	}
	return nil
}

// baseURL is where a buffer is reached.
type baseURL string

// check refuses what is none. Empty, as an empty variable is, is the default.
func (u baseURL) check() error {
	if _, err := provider.ParseBase(string(u)); u != "" && err != nil {
		return misused("--url, or SPOOL_URL: %w", err)
	}
	return nil
}
