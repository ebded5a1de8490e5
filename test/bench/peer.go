package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// What a user would pick instead of Spool, each as its README says.
const (
	targetResumable       target = "resumable-stream"                     // Redis as Debian ships it
	targetResumableAlways target = "resumable-stream, appendfsync always" // Redis that stores what it is told
	targetDurableEach     target = "durable-streams, POST per event"
	targetDurableBatched  target = "durable-streams, batched"
)

// peersFolder holds the programs in JavaScript, in the module's own tree.
const peersFolder = "test/bench/peers"

// installPeers installs what they import.
func installPeers(ctx context.Context) error {
	for _, program := range []string{"node", "npm", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("bench-peers needs %s: %w", program, err)
		}
	}
	if _, err := os.Stat(peersFolder); err != nil {
		return fmt.Errorf("run it at the root of the module: %w", err)
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	npm.Dir = peersFolder
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}

// addPeer starts what keeps the streams, and before it what answers on address.
func (s *service) addPeer(ctx context.Context, t target, address, upstream, data string) error {
	store, err := freeAddress()
	if err != nil {
		return err
	}
	script := func(name string, args ...string) func() (*child, error) {
		return func() (*child, error) {
			return start(ctx, "node", append([]string{filepath.Join(peersFolder, name)}, args...)...)
		}
	}
	var server, app func() (*child, error)
	name := "server"
	switch t {
	case targetResumable, targetResumableAlways:
		name = "redis"
		args, err := redisArgs(store, data, t == targetResumableAlways)
		if err != nil {
			return err
		}
		server = func() (*child, error) { return startOn(ctx, store, "redis-server", args...) }
		app = script("resumable.mjs", address, upstream, "redis://"+store)
	case targetDurableEach:
		server = script("durable-server.mjs", store, data)
		app = script("durable-app.mjs", address, upstream, "http://"+store, "each")
	case targetDurableBatched:
		server = script("durable-server.mjs", store, data)
		app = script("durable-app.mjs", address, upstream, "http://"+store, "batched")
	default:
		return fmt.Errorf("no program %q", t)
	}
	if err := s.add(name, server); err != nil {
		return err
	}
	return s.add("app", app)
}

// redisArgs is Redis with its defaults, or with a log that is flushed before each answer.
func redisArgs(address, dir string, always bool) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	args := []string{"--bind", host, "--port", port, "--dir", dir}
	if always {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	return args, err
}
