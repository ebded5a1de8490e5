package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer/jetstream"
)

type clusterCmd struct {
	Init clusterInitCmd `cmd:"" help:"Create the log that the nodes of a cluster share, or tell it how its servers are set now."`
}

type clusterInitCmd struct {
	storeFlags
	Replicas         int  `placeholder:"N" help:"Copies of each event: 3 (default) survive the loss of one server, 5 of two. A log that is there keeps what it has."`
	Shards           int  `placeholder:"N" help:"Streams that runs are spread over, for ever (default one for each server of --store, or what the log has)."`
	UnsafeDurability bool `env:"SPOOL_UNSAFE_DURABILITY" help:"Also with fewer than three replicas, or where the servers do not tell that they have sync_interval: always."`
	output
}

// made is the log as it is then.
type made struct {
	Name     string `json:"name"`
	Shards   int    `json:"shards"`
	Replicas int    `json:"replicas"`
	Flushes  bool   `json:"flushes"` // its servers were seen to flush before they acknowledge
}

// Run asks the servers whether they flush, creates the streams, and leaves in them what was seen: nodes
// that cannot ask go by it.
func (c clusterInitCmd) Run(ctx context.Context, out io.Writer) error {
	set, err := c.settings()
	if err != nil {
		return err
	}
	if set.URL == "" {
		return misused("cluster init: --store is needed: the NATS servers")
	}
	if err := (jetstream.Layout{Shards: c.Shards, Replicas: c.Replicas}).Validate(); err != nil {
		return misused("cluster init: --%w", err)
	}
	lazy := jetstream.Flushing(ctx, set.monitors())
	if lazy != nil && !c.UnsafeDurability {
		return fmt.Errorf("cluster init: %w; give the servers' monitoring ports with --store-monitor, or take the risk with --unsafe-durability", lazy)
	}
	l := jetstream.Layout{Name: set.Name, Shards: c.Shards, Replicas: c.Replicas, Flushes: lazy == nil}
	err = set.connected(func(nc *nats.Conn) error {
		if err := c.complete(ctx, nc, set, &l); err != nil {
			return err
		}
		return jetstream.Init(ctx, nc, l)
	})
	if err != nil {
		return fmt.Errorf("cluster init: %w", err)
	}
	m := made{l.Name, l.Shards, l.Replicas, l.Flushes}
	return c.print(out, m, func(w io.Writer) {
		fmt.Fprintf(w, "ok: log %s, %d shards, %d replicas\n", m.Name, m.Shards, m.Replicas)
		if !m.Flushes {
			fmt.Fprintf(w, "its servers are not known to flush before they acknowledge: nodes take it with --unsafe-durability alone\n")
		}
	})
}

// complete gives l what no flag has said: what the log has where there is one, else the defaults.
func (c clusterInitCmd) complete(ctx context.Context, nc *nats.Conn, set storeSettings, l *jetstream.Layout) error {
	servers, err := set.access().Addresses()
	if err != nil {
		return err
	}
	have, err := jetstream.ReadLayout(ctx, nc, set.Name)
	if errors.Is(err, jetstream.ErrNoLog) {
		have, err = jetstream.Layout{Shards: len(servers), Replicas: jetstream.SafeReplicas}, nil
	}
	if err != nil {
		return err
	}
	l.Shards, l.Replicas = cmp.Or(l.Shards, have.Shards), cmp.Or(l.Replicas, have.Replicas)
	if l.Replicas < jetstream.SafeReplicas && !c.UnsafeDurability {
		return fmt.Errorf("--replicas %d: what is acknowledged can be lost with one server; take the risk with --unsafe-durability", l.Replicas)
	}
	return nil
}
