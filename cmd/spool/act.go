package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/client"
	"github.com/spool-dev/spool/api/wire"
)

type cancelCmd struct {
	ID runID `arg:"" help:"The run's id."`
	remote
	output
}

// Run stops a run. One that has ended stays as it ended.
func (c cancelCmd) Run(ctx context.Context, out io.Writer) error {
	return acted(ctx, out, c.remote, c.output, func(ctx context.Context, b *client.Client) (wire.Run, error) { return b.Cancel(ctx, c.ID.String()) })
}

type ackCmd struct {
	ID runID `arg:"" help:"The run's id."`
	remote
	output
}

// Run releases a run's answer.
func (c ackCmd) Run(ctx context.Context, out io.Writer) error {
	return acted(ctx, out, c.remote, c.output, func(ctx context.Context, b *client.Client) (wire.Run, error) { return b.Ack(ctx, c.ID.String()) })
}

// acted prints what a run has become.
func acted(ctx context.Context, out io.Writer, r remote, o output, do func(context.Context, *client.Client) (wire.Run, error)) error {
	var run wire.Run
	err := r.act(ctx, func(ctx context.Context, b *client.Client) (err error) {
		run, err = do(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	return o.print(out, run, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", run.ID, words(run.State, run.Reason)) })
}

type tokenCmd struct {
	ID     runID         `arg:"" help:"The run's id."`
	TTL    time.Duration `name:"ttl" default:"10m" placeholder:"DURATION" help:"How long it is good for, at most 24h."`
	From   int64         `placeholder:"N" help:"The first position that it may read (default 0)."`
	Origin string        `placeholder:"URL" help:"The origin whose pages alone may use it."`
	remote
	output
}

// Run prints a token, alone on its line.
func (c tokenCmd) Run(ctx context.Context, out io.Writer) error {
	switch {
	case c.TTL <= 0 || c.TTL > api.MaxTokenTTL:
		return misused("--ttl: %s must be above 0 and at most %s", c.TTL, api.MaxTokenTTL)
	case c.From < 0:
		return misused("--from: %d is no position: they count from 0", c.From)
	case c.Origin != "" && !isOrigin(c.Origin):
		return misused("--origin: %q must be like https://app.example.com", c.Origin)
	}
	var token wire.Token
	err := c.act(ctx, func(ctx context.Context, b *client.Client) (err error) {
		token, err = b.Token(ctx, c.ID.String(), wire.TokenRequest{TTL: c.TTL.String(), From: c.From, Origin: c.Origin})
		return err
	})
	if err != nil {
		return err
	}
	return c.print(out, token, func(w io.Writer) { fmt.Fprintln(w, token.Token) })
}
