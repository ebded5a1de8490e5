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
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

type serveCmd struct {
	Listen      string   `env:"SPOOL_LISTEN" placeholder:"ADDR" help:"Address to serve on (default 127.0.0.1:8787)."`
	AdminListen string   `env:"SPOOL_ADMIN_LISTEN" placeholder:"ADDR" help:"Address of the admin listener: metrics, profiles and the console with all runs. Off by default."`
	AdminKey    string   `env:"SPOOL_ADMIN_KEY" placeholder:"KEY" help:"What the admin listener asks for; needed beyond the loopback."`
	Data        string   `env:"SPOOL_DATA" placeholder:"DIR" help:"Data folder, created where it is missing (default ./data)."`
	Provider    []string `env:"SPOOL_PROVIDER" placeholder:"NAME[:DIALECT]=URL" help:"A provider and its base URL, without /v1; repeatable. Overrides a built-in one."`
	Config      string   `env:"SPOOL_CONFIG" placeholder:"FILE" help:"YAML file with these settings and more; flags and variables outrank it."`
	Sync        string   `env:"SPOOL_SYNC" placeholder:"full|normal" help:"full (default): what a reader saw survives a power cut. normal: it survives the death of the process only."`
	Grace       string   `env:"SPOOL_GRACE" placeholder:"DURATION" help:"At shutdown, how long live runs may take to end; 0 (default) waits until they have."`
	TLSCert     string   `name:"tls-cert" env:"SPOOL_TLS_CERT" placeholder:"FILE" help:"Certificate chain, PEM: serve TLS. With --tls-key."`
	TLSKey      string   `name:"tls-key" env:"SPOOL_TLS_KEY" placeholder:"FILE" help:"Its private key, PEM."`
	CORSOrigin  []string `name:"cors-origin" env:"SPOOL_CORS_ORIGIN" placeholder:"ORIGIN" help:"An origin whose pages may read answers; repeatable. None by default."`
	TTL         string   `name:"ttl" env:"SPOOL_TTL" placeholder:"DURATION" help:"How long an ended run's chunks are kept where the call does not say (default 1h)."`
	LogLevel    string   `env:"SPOOL_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info (default), warn or error."`
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
//	   └── signal: not ready ─▶ drains end ─▶ tails end ─▶ listener closes ─▶ store closes
func (c *serveCmd) Run() error {
	set, err := c.load()
	if err != nil {
		return err
	}
	log, err := newLogger(set.LogLevel)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }() // stderr may not be a file
	stdlog.SetOutput(io.Discard)      // net/http writes there what a provider sends unasked, which may be an answer
	routes, err := set.routes()
	if err != nil {
		return err
	}
	// The port first: where it is taken, the data stays untouched. Nothing is accepted yet.
	given, err := inherited()
	if err != nil {
		return err
	}
	listener, err := listen(given.service, set.Listen, set.Limits.Connections)
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
	edge, err := set.TLS.wrap(listener, log)
	if err != nil {
		return err
	}

	ctx, interrupt := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer interrupt()
	store, err := sqlite.Open(ctx, sqlite.Config{Dir: set.Data, Sync: set.Sync, Window: set.Limits.Window, Log: log})
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

	client := provider.NewClient(longestConnect(routes), set.Limits.ProviderHeaders)
	metrics := api.NewMetrics()
	metrics.Recovered(sealed)
	metrics.Prices(routes)
	metrics.Disk(func() (used, free int64) { return measure(set.Data) })
	metrics.Reusable(func() int64 { return reusable(store) })
	runs := buffer.NewRuns(store, client, set.runs(metrics), log)
	server := &api.Server{
		Store: store, Runs: runs, Client: client, Log: log,
		Callers:   api.NewCallers(secret, set.Auth.Keys),
		Tokens:    api.NewTokens(secret, []byte(set.PreviousSecret)),
		Origins:   set.CORS.Origins,
		Providers: routes,
		Limits: api.Limits{
			Body: set.Limits.Body, BodyTime: set.Limits.BodyTime, BodyGap: set.Limits.BodyGap, TTL: set.TTL, MaxTTL: set.Limits.MaxTTL, Hold: set.Limits.Hold,
			Heartbeat: set.Limits.Heartbeat, Write: set.Limits.Write,
		},
		Cloudflare: set.Compat.cloudflare(listener.Addr()),
	}
	stopAdmin, where := func() {}, zap.Skip()
	if figures := metrics.Handler(runs); admin == nil {
		server.Metrics = figures
	} else {
		where = zap.Stringer("admin", admin.Addr())
		record := console.NewRecord(metrics.Gatherer(), log)
		stopAdmin = serveAdmin(admin, record, &api.Admin{
			Server: server, Key: set.Admin.Key, Hosts: set.Admin.Hosts, Record: record, Metrics: figures,
			Base: base(listener.Addr(), set.TLS),
		}, log)
	}
	log.Info("serving", zap.Stringer("address", listener.Addr()), zap.String("data", set.Data),
		zap.String("sync", set.Sync), zap.Int("recovered", sealed), zap.Bool("tls", set.TLS.Cert != ""), where, zap.String("version", version))
	notify(ready, log) // what comes from here on is answered
	return serve(ctx, edge, newServer(server.Handler(), set.Limits, log), server, set.Grace, stopAdmin, log)
}

// serve answers requests until ctx ends, then shuts down in the order of the data. A second signal
// aborts.
func serve(ctx context.Context, l net.Listener, h *http.Server, s *api.Server, grace time.Duration, stopAdmin func(), log *zap.Logger) error {
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	sweeping, stopSweep := context.WithCancel(context.Background())
	swept := make(chan struct{})
	go func() { defer close(swept); s.Runs.Sweep(sweeping) }()

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGINT, syscall.SIGTERM)
	go abortOnSignal(again)
	notify(stopping, log)
	log.Info("draining", zap.Int("live", s.Runs.Live()), zap.Duration("grace", grace))
	s.Drain()
	s.Runs.Drain(within(grace))
	bounded, cancel := context.WithTimeout(context.Background(), tailTimeout)
	defer cancel()
	if e := h.Shutdown(bounded); e != nil {
		_ = h.Close() // readers that did not take their end are cut
	}
	stopAdmin() // it has shown all that till now
	stopSweep()
	<-swept
	if e := s.Store.Close(); e != nil {
		err = errors.Join(err, fmt.Errorf("close the log: %w", e))
	}
	s.Client.CloseIdle()
	log.Info("stopped")
	return err
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

func newLogger(level string) (*zap.Logger, error) {
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log_level: %q is none of debug, info, warn, error", level)
	}
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(l)
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
