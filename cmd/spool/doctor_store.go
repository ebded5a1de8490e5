package main

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer/jetstream"
)

// storeFindings look at the log of a cluster, and at what its servers are really set to.
func storeFindings(ctx context.Context, s storeSettings) []finding {
	var l jetstream.Layout
	err := s.connected(func(nc *nats.Conn) (err error) {
		l, err = jetstream.ReadLayout(ctx, nc, s.Name)
		return err
	})
	all := []finding{}
	switch {
	case err != nil:
		all = append(all, found(fail, "store", "%v", err))
	case l.Replicas < jetstream.SafeReplicas:
		all = append(all, found(unless(s.Unsafe), "store", "%s: %d replicas: what is acknowledged can be lost with one server", s.where(), l.Replicas))
	case !l.Flushes:
		all = append(all, found(unless(s.Unsafe), "store", "%s: spool cluster init has not seen that its servers flush before they acknowledge", s.where()))
	default:
		all = append(all, found(good, "store", "%s: %d shards, %d replicas", s.where(), l.Shards, l.Replicas))
	}
	for _, base := range s.monitors() {
		all = append(all, serverFinding(ctx, base, s.Unsafe))
	}
	return all
}

// unless is a failure, or a warning where somebody has taken the risk.
func unless(unsafe bool) level {
	if unsafe {
		return warn
	}
	return fail
}

func serverFinding(ctx context.Context, base string, unsafe bool) finding {
	check := "server " + base
	v, err := jetstream.Look(ctx, base)
	switch {
	case err != nil:
		return found(warn, check, "does not tell whether it flushes: %v", err)
	case !v.Stores:
		return found(fail, check, "%s, %s: JetStream is off", v.Name, v.Version)
	case !v.Always:
		return found(unless(unsafe), check, "%s, %s: flushes each %s: a power cut of the majority takes acknowledged events; set sync_interval: always", v.Name, v.Version, v.Interval)
	case v.Free < lowDisk:
		return found(warn, check, "%s, %s: %d MiB of its max_file_store are left", v.Name, v.Version, v.Free>>20)
	}
	return found(good, check, "%s, %s: flushes before it acknowledges, %d MiB left", v.Name, v.Version, v.Free>>20)
}
