// Package servers runs real NATS servers inside a test: one, or a cluster of three whose servers can be
// ended and started again. They have their files in the test's own folder, and end with it.
package servers

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// bound ends a wait for what has to come. No test measures anything with it.
const bound = 30 * time.Second

// start runs a server.
func start(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.HTTPHost, o.NoSigs, o.NoLog, o.JetStream = "127.0.0.1", "127.0.0.1", true, true, true
	if o.Port == 0 {
		o.Port, o.HTTPPort = server.RANDOM_PORT, server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(bound) {
		t.Fatal("server does not get ready")
	}
	return s
}

// Single runs one server that flushes when it likes: for what does not depend on its death.
func Single(t testing.TB) *server.Server {
	t.Helper()
	s := start(t, &server.Options{StoreDir: t.TempDir(), SyncInterval: time.Hour})
	t.Cleanup(func() { end(s) })
	return s
}

// Monitor is where a server tells what it is set to.
func Monitor(s *server.Server) string { return "http://" + s.MonitorAddr().String() }

func end(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// Cluster is three servers that flush before they acknowledge.
type Cluster struct {
	testing.TB
	options []*server.Options
	servers []*server.Server
}

// Start runs a cluster, and returns when it has a leader.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{TB: t}
	ports := freePorts(t, 3)
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	for i, port := range ports {
		o := &server.Options{ServerName: fmt.Sprint("n", i), StoreDir: t.TempDir(), SyncAlways: true, Routes: routes}
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
		s := start(t, o)
		o.Port, o.HTTPPort = s.Addr().(*net.TCPAddr).Port, s.MonitorAddr().Port // for when it starts again
		c.options, c.servers = append(c.options, o), append(c.servers, s)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			end(s)
		}
	})
	c.wait("leader", func() bool {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	})
	return c
}

// freePorts are n that nobody listens on: each server has to know all of them before the first starts.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // it has accepted nothing
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// wait polls for what cannot be waited for.
func (c *Cluster) wait(what string, done func() bool) {
	c.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(bound)
	defer late.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late.C:
			c.Fatalf("no %s", what)
		}
	}
}

// URLs are where clients connect to.
func (c *Cluster) URLs() string {
	var all []string
	for _, s := range c.servers {
		all = append(all, s.ClientURL())
	}
	return strings.Join(all, ",")
}

// Monitors are where the servers tell what they are set to.
func (c *Cluster) Monitors() (all []string) {
	for _, s := range c.servers {
		all = append(all, Monitor(s))
	}
	return all
}

// Restart ends server i, and starts it again over its files.
func (c *Cluster) Restart(i int) {
	c.Helper()
	end(c.servers[i])
	c.servers[i] = start(c.TB, c.options[i].Clone())
}
