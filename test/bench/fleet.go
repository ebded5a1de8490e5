package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// rampEach is the time between the starts of two clients.
const rampEach = 500 * time.Microsecond

// errLate: some clients have had no event within the limit.
var errLate = errors.New("some streams did not open")

// fleet is all clients of one load process, each on a goroutine of its own.
type fleet struct {
	clients []*client
	running sync.WaitGroup
	opening sync.WaitGroup // those that have had no event yet
	cancel  context.CancelFunc
}

// launch starts the clients, one after the other, each to do its work.
func launch(ctx context.Context, clients []*client, work func(context.Context, int)) *fleet {
	f := &fleet{clients: clients}
	ctx, f.cancel = context.WithCancel(ctx)
	f.opening.Add(len(clients))
	for i, c := range clients {
		opened := sync.OnceFunc(f.opening.Done)
		c.opened = opened
		f.running.Go(func() {
			defer opened() // or it never does
			if pause(ctx, time.Duration(i)*rampEach) == nil {
				work(ctx, i)
			}
		})
	}
	return f
}

// repeated starts the clients to call again and again.
func repeated(ctx context.Context, clients []*client) *fleet {
	return launch(ctx, clients, func(ctx context.Context, i int) { clients[i].repeat(ctx) })
}

// opened waits until every client has had its first event.
func (f *fleet) opened(ctx context.Context, limit time.Duration) error {
	all := make(chan struct{})
	go func() { f.opening.Wait(); close(all) }() // ends with the clients, at the latest
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-all:
		return nil
	case <-late.C:
		return errLate
	case <-ctx.Done():
		return ctx.Err()
	}
}

// land ends the clients and waits for them. It may be called again.
func (f *fleet) land() {
	f.cancel()
	f.running.Wait()
}
