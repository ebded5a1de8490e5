package main

import (
	"context"
	"io"
	stdlog "log"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

type serveCmd struct {
	Listen      string   `env:"SPOOL_LISTEN" placeholder:"ADDR" help:"Address to serve on (default 127.0.0.1:8787)."`
	AdminListen string   `env:"SPOOL_ADMIN_LISTEN" placeholder:"ADDR" help:"Address of the admin listener: metrics, profiles and the console with all runs. Off by default."`
	AdminKey    string   `env:"SPOOL_ADMIN_KEY" placeholder:"KEY" help:"What the admin listener asks for; needed beyond the loopback."`
	Data        string   `env:"SPOOL_DATA" placeholder:"DIR" help:"Data folder, created where it is missing (default ./data)."`
	Provider    []string `env:"SPOOL_PROVIDER" placeholder:"NAME[:DIALECT]=URL" help:"A provider and its base URL, without /v1; repeatable. Overrides a built-in one."`
	Config      string   `env:"SPOOL_CONFIG" placeholder:"FILE" help:"YAML file with these settings and more; flags and variables outrank it."`
	storeFlags
	UnsafeDurability bool     `env:"SPOOL_UNSAFE_DURABILITY" help:"With --store: take a log that a server's end, or a power cut, can take acknowledged events from."`
	Secret           string   `env:"SPOOL_SECRET" placeholder:"TEXT" help:"For run tokens and the hashes of credentials, at least 32 characters; the nodes of a cluster need the same. Else one is made in the data folder."`
	Sync             string   `env:"SPOOL_SYNC" placeholder:"full|normal" help:"full (default): what a reader saw survives a power cut. normal: it survives the death of the process only."`
	Grace            string   `env:"SPOOL_GRACE" placeholder:"DURATION" help:"At shutdown, how long live runs may take to end; 0 (default) waits until they have."`
	TLSCert          string   `name:"tls-cert" env:"SPOOL_TLS_CERT" placeholder:"FILE" help:"Certificate chain, PEM: serve TLS. With --tls-key."`
	TLSKey           string   `name:"tls-key" env:"SPOOL_TLS_KEY" placeholder:"FILE" help:"Its private key, PEM."`
	CORSOrigin       []string `name:"cors-origin" env:"SPOOL_CORS_ORIGIN" placeholder:"ORIGIN" help:"An origin whose pages may read answers; repeatable. None by default."`
	TTL              string   `name:"ttl" env:"SPOOL_TTL" placeholder:"DURATION" help:"How long an ended run's chunks are kept where the call does not say (default 1h)."`
	LogLevel         string   `env:"SPOOL_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info (default), warn or error."`
	Beside           bool     `env:"SPOOL_BESIDE" help:"Open a data folder that another buffer on this machine serves too, which is to drain: an upgrade in containers."`
}

// Run serves until a signal ends it, and returns when everything that was accepted is stored.
//
//	listener ──▶ api ──▶ resume ──▶ tail ──▶ store ◀── runs ──▶ client ──▶ providers
//	admin listener ──▶ api.Admin: metrics, profiles, the console, where one is configured
//	   ▲                   store.Recover, before the first request is accepted
//	   ├── SIGHUP, or another file: service.apply puts other settings in front of the same log
//	   ├── SIGUSR2: a new process takes the listeners over; this one ends with its runs
//	   └── signal: not ready ─▶ drains end ─▶ tails end ─▶ listener closes ─▶ store closes
func (c *serveCmd) Run() error {
	asked := listenForUpgrades()
	level := zap.NewAtomicLevel()
	log, err := newLogger(level)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }() // stderr may not be a file
	signal.Ignore(syscall.SIGPIPE)    // who reads the log may leave: that ends no run
	stdlog.SetOutput(io.Discard)      // net/http writes there what a provider sends unasked, which may be an answer
	given, err := inherited()
	if err != nil {
		return err
	}
	served := false
	err = c.run(given, asked, level, log, func() { served = true; given.tell(nil, log) })
	if !served {
		given.tell(err, log)
	}
	return err
}

// run is Run with what was given to the process. It calls announce when requests are about to be answered.
func (c *serveCmd) run(given sockets, asked <-chan os.Signal, level zap.AtomicLevel, log *zap.Logger, announce func()) error {
	changes := awaitChanges(c.Config)
	set, err := c.load()
	if err != nil {
		return err
	}
	if l, err := levelOf(set.LogLevel); err == nil { // it was checked with the rest
		level.SetLevel(l)
	}
	// The port first: where it is taken, the data stays untouched. Nothing is accepted yet.
	doors, err := openDoors(given, set, log)
	if err != nil {
		return err
	}
	defer doors.close()
	path, err := program()
	if err != nil {
		return err
	}

	ctx, interrupt := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer interrupt()
	s := newService(c, set, doors, level, log)
	s.asked, s.changes = asked, changes
	s.next = successor{program: path, args: os.Args[1:], listeners: doors.byName()}
	recovered, err := s.open(ctx, c.Beside || given.waits != nil)
	if err != nil {
		return err
	}
	stopAdmin, where := func() {}, zap.Skip()
	if doors.admin != nil {
		stopAdmin, where = serveAdmin(doors.adminEdge, s.record, &s.back, log), zap.Stringer("admin", s.admin)
	}
	log.Info("serving", zap.Stringer("address", s.address), zap.String("data", set.where()),
		zap.String("sync", set.Sync), zap.Int("recovered", recovered), zap.Bool("tls", set.TLS.Cert != ""), where, zap.String("version", version))
	if given.waits == nil { // else the process before this one speaks for it
		notify(ready, log) // what comes from here on is answered
	}
	announce()
	h := newServer(s.traffic.count(&s.front), set.Limits, log)
	h.ConnState = s.traffic.connection
	return s.serve(ctx, doors.serviceEdge, h, stopAdmin)
}
