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
	"path/filepath"
	"strconv"
	"strings"
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
	binary  string // Spool
	fake    *fakellm.Server
	servers []*process
	nodes   []*process
	urls    []string // of the nodes
	store   string   // the servers' addresses
	log     *os.File
}

// newFleet builds Spool, and starts all. What has started is ended by close, also after an error.
func newFleet(ctx context.Context, dir string, config fakellm.Config) (*fleet, error) {
	f := &fleet{dir: dir}
	var err error
	if f.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return f, err
	}
	if f.binary, err = binary.Build(ctx, dir, binary.Spool); err != nil {
		return f, err
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
		if err := f.addNode(fmt.Sprint("node ", i), f.store); err != nil {
			return f, err
		}
	}
	return f, nil
}

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
			"nats", "--name", name, "--dir", filepath.Join(f.dir, name), "--routes", strings.Join(routes, ","),
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
		out, err := exec.CommandContext(ctx, f.binary, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cluster init: %w: %s", err, out)
		}
		return nil
	})
}

// addNode starts one more node, on the servers at store.
func (f *fleet) addNode(name, store string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	p := &process{name: name, program: f.binary, ready: `"serving"`, log: f.log, args: []string{
		"serve", "--listen", address(ports[0]), "--store", store, "--secret", secret, "--grace", "20s",
		"--provider", "openai=" + f.fake.URL + "/load", "--provider", "words:openai_chat=" + f.fake.URL,
	}}
	f.nodes = append(f.nodes, p)
	f.urls = append(f.urls, "http://"+address(ports[0]))
	return p.start()
}

// check verifies what is stored.
func (f *fleet) check(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, f.binary, "check", "--store", f.store).CombinedOutput()
	if err != nil {
		return fmt.Errorf("check: %w: %s", err, out)
	}
	return nil
}

// ready waits until node i takes new runs.
func (f *fleet) ready(ctx context.Context, i int) error {
	return eventually(ctx, func() error {
		resp, err := http.Get(f.urls[i] + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			b, _ := io.ReadAll(resp.Body) // for people
			return fmt.Errorf("node %d is not ready: %s", i, b)
		}
		return nil
	})
}

func (f *fleet) close() {
	for _, p := range append(f.nodes, f.servers...) {
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
