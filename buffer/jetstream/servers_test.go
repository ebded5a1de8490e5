package jetstream

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// bound ends a wait for what has to come. No test measures anything with it.
const bound = 30 * time.Second

// startServer runs a server of its own.
func startServer(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog, o.JetStream = "127.0.0.1", true, true, true
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
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

// single runs one server that flushes when it likes: for what does not depend on its death.
func single(t testing.TB) *server.Server {
	t.Helper()
	s := startServer(t, &server.Options{StoreDir: t.TempDir(), SyncInterval: time.Hour})
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// cluster is three servers that flush before they acknowledge.
type cluster struct {
	testing.TB
	options []*server.Options
	servers []*server.Server
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{TB: t}
	ports := freePorts(t, 3)
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	for i, port := range ports {
		o := &server.Options{ServerName: fmt.Sprint("n", i), StoreDir: t.TempDir(), SyncAlways: true, Routes: routes}
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
		s := startServer(t, o)
		o.Port = s.Addr().(*net.TCPAddr).Port // for when it starts again
		c.options, c.servers = append(c.options, o), append(c.servers, s)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
			s.WaitForShutdown()
		}
	})
	c.wait("a leader", func() bool {
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
func (c *cluster) wait(what string, done func() bool) {
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

// urls are where clients connect to.
func (c *cluster) urls() (all string) {
	for i, s := range c.servers {
		if i > 0 {
			all += ","
		}
		all += s.ClientURL()
	}
	return all
}

// dial connects to the servers, and again for as long as it takes.
func dial(t testing.TB, urls string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// restart ends server i, and starts it again over its files.
func (c *cluster) restart(i int) {
	c.Helper()
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
	c.servers[i] = startServer(c.TB, c.options[i].Clone())
}
