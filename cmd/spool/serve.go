package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/buffer/sqlite"
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
	Secret           string   `env:"SPOOL_SECRET" placeholder:"TEXT" help:"For run tokens and the hashes of credentials; the nodes of a cluster need the same. Else one is made in the data folder."`
	Sync             string   `env:"SPOOL_SYNC" placeholder:"full|normal" help:"full (default): what a reader saw survives a power cut. normal: it survives the death of the process only."`
	Grace            string   `env:"SPOOL_GRACE" placeholder:"DURATION" help:"At shutdown, how long live runs may take to end; 0 (default) waits until they have."`
	TLSCert          string   `name:"tls-cert" env:"SPOOL_TLS_CERT" placeholder:"FILE" help:"Certificate chain, PEM: serve TLS. With --tls-key."`
	TLSKey           string   `name:"tls-key" env:"SPOOL_TLS_KEY" placeholder:"FILE" help:"Its private key, PEM."`
	CORSOrigin       []string `name:"cors-origin" env:"SPOOL_CORS_ORIGIN" placeholder:"ORIGIN" help:"An origin whose pages may read answers; repeatable. None by default."`
	TTL              string   `name:"ttl" env:"SPOOL_TTL" placeholder:"DURATION" help:"How long an ended run's chunks are kept where the call does not say (default 1h)."`
	LogLevel         string   `env:"SPOOL_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info (default), warn or error."`
	Beside           bool     `env:"SPOOL_BESIDE" help:"Open a data folder that another buffer on this machine serves too, which is to drain: an upgrade in containers."`
}

const (
	sameSignal  = time.Second     // within which a second signal is the first one again
	tailTimeout = 5 * time.Second // for readers that have not taken their end at shutdown
)

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
	listener, err := listen(given.service, set.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	admin, err := set.Admin.listen(given.admin)
	if err != nil {
		return err
	}
	if admin != nil {
		defer admin.Close()
	}
	adminEdge, err := set.Admin.edge(admin, set.TLS, log)
	if err != nil {
		return err
	}
	edge, err := set.TLS.wrap(limited(listener, set.Limits.Connections), log)
	if err != nil {
		return err
	}
	path, err := program()
	if err != nil {
		return err
	}

	ctx, interrupt := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer interrupt()
	tracer, err := set.Telemetry.open(log)
	if err != nil {
		return err
	}
	points, err := newFailpoints()
	if err != nil {
		return err
	}
	store, err := set.open(ctx, log, c.Beside || given.waits != nil, points.log())
	if err != nil {
		return err
	}
	sealed, err := store.Recover(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("recover: %w", err), store.Close())
	}
	secret, err := loadSecret(set)
	if err != nil {
		return errors.Join(err, store.Close())
	}

	s := &service{
		cmd: c, started: set, log: log, level: level, store: store, secret: secret, tracer: tracer,
		metrics: api.NewMetrics(), address: listener.Addr(), asked: asked, changes: changes, points: points,
		next: successor{program: path, args: os.Args[1:], listeners: map[string]net.Listener{serviceSocket: listener}},
	}
	s.pages = api.NewPages(set.Limits.Pages)
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.metrics.Recovered(sealed)
	if log, ok := store.(*sqlite.Store); ok {
		s.metrics.Disk(func() (used, free int64) { return measure(set.Data) })
		s.metrics.Reusable(func() int64 { return reusable(log) })
		s.metrics.Retiring(func() int64 { return retiring(log) })
	}
	if admin != nil {
		s.admin, s.record = admin.Addr(), console.NewRecord(s.metrics.Gatherer(), log)
		s.next.listeners[adminSocket] = admin
	}
	if err := s.apply(set); err != nil {
		return errors.Join(err, store.Close())
	}
	stopAdmin, where := func() {}, zap.Skip()
	if admin != nil {
		where = zap.Stringer("admin", admin.Addr())
		stopAdmin = serveAdmin(adminEdge, s.record, &s.back, log)
	}
	log.Info("serving", zap.Stringer("address", listener.Addr()), zap.String("data", set.where()),
		zap.String("sync", set.Sync), zap.Int("recovered", sealed), zap.Bool("tls", set.TLS.Cert != ""), where, zap.String("version", version))
	if given.waits == nil { // else the process before this one speaks for it
		notify(ready, log) // what comes from here on is answered
	}
	announce()
	h := newServer(s.traffic.count(&s.front), set.Limits, log)
	h.ConnState = s.traffic.connection
	return s.serve(ctx, edge, h, stopAdmin)
}

// serve answers requests until ctx ends or a new process has taken over, then shuts down in the order of the data.
// A second signal aborts.
func (s *service) serve(ctx context.Context, l net.Listener, h *http.Server, stopAdmin func()) error {
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	working, stopWork := context.WithCancel(context.Background())
	reading, stopReading := context.WithCancel(working)
	upgraded := make(chan int, 1)
	var sweep, reload sync.WaitGroup
	sweep.Go(func() { s.runs.Sweep(working) })
	reload.Go(func() { s.changes.watch(reading, s.cmd.Config, s.reload) })
	reload.Go(func() {
		if pid := s.upgrades(reading, s.asked); pid > 0 {
			upgraded <- pid
		}
	})

	var err error
	handed := false
	select {
	case <-ctx.Done():
	case err = <-failed:
	case pid := <-upgraded:
		handed = true
		_ = l.Close() // the new process has its own
		stopReading()
		reload.Wait()
		stopAdmin()
		s.handOver(ctx, pid)
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGINT, syscall.SIGTERM)
	go abortOnSignal(again)
	closing, closed := context.WithCancel(context.Background())
	defer closed()
	go whenHung(closing, func() bool { return s.runs.Hung(hungPatience) }, s.abandon)
	if !handed {
		notify(stopping, s.log)
	}
	stopReading()
	reload.Wait() // the settings stay as they are from here on
	s.log.Info("draining", zap.Int("live", s.runs.Live()), zap.Duration("grace", s.now.Grace))
	s.server.Drain()
	s.runs.Drain(within(s.now.Grace))
	bounded, cancel := context.WithTimeout(context.Background(), tailTimeout)
	defer cancel()
	if e := h.Shutdown(bounded); e != nil {
		_ = h.Close() // readers that did not take their end are cut
	}
	stopAdmin() // it has shown all that till now
	stopWork()
	sweep.Wait()
	late := time.AfterFunc(hungPatience, s.abandon)
	defer late.Stop()
	if e := s.store.Close(); e != nil {
		err = errors.Join(err, fmt.Errorf("close the log: %w", e))
	}
	s.client.CloseIdle()
	closeTracer(s.tracer, s.log)
	s.log.Info("stopped")
	return err
}

// abandon ends the process, as kill -9 would, where the log hangs.
func (s *service) abandon() {
	s.log.Error("the log answers nobody: it is left as it is, and the next start recovers", zap.Duration("patience", hungPatience))
	os.Exit(1)
}

// within is a context that ends after grace; after none where grace is 0.
func within(grace time.Duration) context.Context {
	if grace <= 0 {
		return context.Background()
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// abortOnSignal ends the process at the next signal, as kill -9 would: the next start recovers. Some
// supervisors send the first one twice, to the process and to its group: that is one signal.
func abortOnSignal(again <-chan os.Signal) {
	begun := time.Now()
	for range again {
		if time.Since(begun) > sameSignal {
			os.Exit(1)
		}
	}
}

// levelOf is the level that log_level names.
func levelOf(text string) (zapcore.Level, error) {
	l, err := zapcore.ParseLevel(text)
	if err != nil {
		return l, fmt.Errorf("log_level: %q is none of debug, info, warn, error", text)
	}
	return l, nil
}

// newLogger writes what level lets through, now and whenever it is changed.
func newLogger(level zap.AtomicLevel) (*zap.Logger, error) {
	cfg := zap.NewProductionConfig()
	cfg.Level = level
	cfg.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	cfg.EncoderConfig.TimeKey = "time"
	cfg.DisableStacktrace = true
	cfg.Sampling = nil
	return cfg.Build()
}

// cause is the system's own word for why an address cannot be taken.
func cause(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	return err
}

func (c compatSettings) cloudflare(addr net.Addr) bool {
	if c.Cloudflare != nil {
		return *c.Cloudflare
	}
	return loopback(addr)
}

// loadSecret is the configured secret, or the one in the data folder, which is made once.
func loadSecret(s settings) ([]byte, error) {
	if s.Secret != "" {
		return []byte(s.Secret), nil
	}
	path := filepath.Join(s.Data, secretName)
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) >= 32 {
		return []byte(strings.TrimSpace(string(b))), nil
	}
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("secret %s: not readable, or shorter than 32 characters", path)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails since Go 1.24
	text := hex.EncodeToString(random)
	if err := writeOnce(path, text+"\n"); err != nil {
		return nil, fmt.Errorf("secret %s: %w", path, err)
	}
	return []byte(text), nil
}

// writeOnce makes a file whole or not at all: a crash in between leaves a file of another name.
func writeOnce(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
