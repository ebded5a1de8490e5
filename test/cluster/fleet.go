package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spool-dev/spool/test/binary"
	"github.com/spool-dev/spool/test/fakellm"
)

// size is how many servers and how many nodes there are.
const size = 3

// secret is of all nodes.
const secret = "a secret of all nodes of the cluster"

// fleet is three NATS servers and three nodes of Spool, each a process of its own, before one scripted
// provider.
type fleet struct {
	dir     string
	logs    string // folder of what servers and nodes say
	version string // which of the versions nodes are started from
	fake    *fakellm.Server
	servers []*process
	store   string // the servers' addresses
	log     *os.File

	mu    sync.Mutex // guards what follows
	nodes []*node
	left  []*node // those that others were put in the place of
}

// node is a process of Spool, and where it serves.
type node struct {
	*process
	url string
}

// versions are those that nodes are upgraded from and to, in turns. They differ in their name alone.
var versions = [...]string{"one", "two"}

// newFleet builds Spool, and starts all. What has started is ended by close, also after an error.
func newFleet(ctx context.Context, dir, logs string, config fakellm.Config) (*fleet, error) {
	f := &fleet{dir: dir, logs: logs, version: versions[0]}
	var err error
	if f.log, err = os.Create(filepath.Join(logs, "log")); err != nil {
		return f, err
	}
	for _, v := range versions {
		if _, err := binary.Build(ctx, filepath.Join(dir, v), binary.Spool, "-ldflags=-X main.version="+v); err != nil {
			return f, err
		}
	}
	if f.fake, err = fakellm.New(loopback+":0", config); err != nil {
		return f, err
	}
	monitors, err := f.startServers()
	if err != nil {
		return f, err
	}
	if err := f.create(ctx, monitors); err != nil {
		return f, err
	}
	for i := range size {
		if _, err := f.addNode(fmt.Sprint("node ", i), on(f.store)...); err != nil {
			return f, err
		}
	}
	return f, nil
}

// program is Spool in the version that nodes are started from now.
func (f *fleet) program() string { return filepath.Join(f.dir, f.version, path.Base(binary.Spool)) }

// startServers starts the NATS servers, and returns where they tell how they are set.
func (f *fleet) startServers() (monitors []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3 * size)
	if err != nil {
		return nil, err
	}
	var routes, stores []string
	for i := range size {
		stores = append(stores, "nats://"+address(ports[3*i]))
		monitors = append(monitors, "http://"+address(ports[3*i+1]))
		routes = append(routes, address(ports[3*i+2]))
	}
	f.store = strings.Join(stores, ",")
	for i := range size {
		name := fmt.Sprint("nats", i)
		p := &process{name: name, program: self, ready: "ready", log: f.log, args: []string{
			"nats", "--name", name, "--dir", filepath.Join(f.dir, name), "--log", filepath.Join(f.logs, name+".log"), "--routes", strings.Join(routes, ","),
			"--port", strconv.Itoa(ports[3*i]), "--monitor", strconv.Itoa(ports[3*i+1]), "--route", strconv.Itoa(ports[3*i+2]),
		}}
		f.servers = append(f.servers, p)
		if err := p.start(); err != nil {
			return nil, err
		}
	}
	return monitors, nil
}

// create creates the log, as soon as the servers have found each other.
func (f *fleet) create(ctx context.Context, monitors []string) error {
	args := []string{"cluster", "init", "--store", f.store}
	for _, m := range monitors {
		args = append(args, "--store-monitor", m)
	}
	return eventually(ctx, func() error {
		out, err := exec.CommandContext(ctx, f.program(), args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cluster init: %w: %s", err, out)
		}
		return nil
	})
}

// on are the arguments of a node on the servers at store.
func on(store string) []string {
	return []string{"--store", store, "--secret", secret, "--grace", "20s"}
}

// startNode starts a process of Spool, with arguments that say where its log is. Nobody knows of it yet.
func (f *fleet) startNode(name string, args ...string) (*node, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, program: f.program(), ready: `"version":"` + f.version + `"`, log: f.log, args: append([]string{
		"serve", "--listen", address(ports[0]),
		"--provider", "openai=" + f.fake.URL + "/load", "--provider", "words:openai_chat=" + f.fake.URL,
	}, args...)}
	return &node{p, "http://" + address(ports[0])}, p.start()
}

// addNode starts one more node, and returns its number.
func (f *fleet) addNode(name string, args ...string) (i int, err error) {
	n, err := f.startNode(name, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n != nil {
		f.nodes = append(f.nodes, n)
	}
	return len(f.nodes) - 1, err
}

// node is the one that serves as number i now.
func (f *fleet) node(i int) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[i]
}

// next is the number of the node after i.
func (f *fleet) next(i int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (i + 1) % len(f.nodes)
}

// replace puts a new node in the place of number i: who looks for that one is sent to the new one from then on.
func (f *fleet) replace(i int, by *node) (old *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, f.nodes[i] = f.nodes[i], by
	f.left = append(f.left, old)
	return old
}

// check verifies what is stored.
func (f *fleet) check(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, f.program(), "check", "--store", f.store).CombinedOutput()
	if err != nil {
		return fmt.Errorf("check: %w: %s", err, out)
	}
	return nil
}

// ready waits until node i takes new runs.
func (f *fleet) ready(ctx context.Context, i int) error {
	return eventually(ctx, func() error { return f.readiness(ctx, i) })
}

// readiness is nil where node i takes new runs now.
func (f *fleet) readiness(ctx context.Context, i int) error {
	resp, err := do(ctx, http.MethodGet, f.node(i).url+"/readyz", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body) // for people
		return fmt.Errorf("node %d is not ready: %s", i, b)
	}
	return nil
}

func (f *fleet) close() {
	all := slices.Clone(f.servers)
	for _, n := range slices.Concat(f.nodes, f.left) {
		all = append(all, n.process)
	}
	for _, p := range all {
		if p.ended != nil {
			p.kill()
		}
	}
	if f.fake != nil {
		f.fake.Close()
	}
	if f.log != nil {
		_ = f.log.Close() // for people
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// freePorts are n on which nobody listens now.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // it has accepted nothing
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

const (
	patience = 90 * time.Second // for what has to come
	look     = 50 * time.Millisecond
)

// eventually tries until do succeeds, and returns its last error after patience.
func eventually(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
