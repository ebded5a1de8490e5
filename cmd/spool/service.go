package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/api/trace"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/jetstream"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// service is what lives from the start to the end, and in front of it the handlers that the present
// settings make. A request is served to its end by the handlers that it came to.
type service struct {
	cmd     *serveCmd
	started settings // what takes a restart to change stays as it is here
	log     *zap.Logger
	level   zap.AtomicLevel
	store   buffer.Store
	pages   *api.Pages // of readers, whatever server they came to
	secret  []byte
	tracer  *trace.Tracer // nil where nothing is exported
	metrics *api.Metrics
	address net.Addr
	admin   net.Addr // nil where there is no admin listener
	record  *console.Record
	points  failpoints

	changes awaited
	asked   <-chan os.Signal // for an upgrade
	next    successor
	traffic traffic
	leaving context.Context // ends with leave, when a new process has taken over
	leave   context.CancelFunc

	front, back switched // of the listener, and of the admin listener

	// Those below belong to who applies settings: Run, then watch, then the shutdown.

	now     settings
	server  *api.Server
	client  *provider.Client
	runs    *buffer.Runs
	figures http.Handler
}

// newService is a service behind doors, which has no log yet.
func newService(c *serveCmd, set settings, d doors, level zap.AtomicLevel, log *zap.Logger) *service {
	s := &service{cmd: c, started: set, log: log, level: level, metrics: api.NewMetrics(), address: d.service.Addr()}
	s.pages = api.NewPages(set.Limits.Pages)
	s.leaving, s.leave = context.WithCancel(context.Background())
	if d.admin != nil {
		s.admin, s.record = d.admin.Addr(), console.NewRecord(s.metrics.Gatherer(), log)
	}
	return s
}

// open takes the log, and puts the handlers that the settings make in front of it. It returns how many live
// runs of dead owners it has sealed: nothing is accepted before. Where it fails, the log is closed again.
func (s *service) open(ctx context.Context, join bool) (recovered int, err error) {
	if s.tracer, err = s.started.Telemetry.open(s.log); err != nil {
		return 0, err
	}
	if s.points, err = newFailpoints(); err != nil {
		return 0, err
	}
	if s.store, err = s.started.open(ctx, s.log, join, s.points.log()); err != nil {
		return 0, err
	}
	if recovered, err = s.begin(ctx); err != nil {
		return 0, errors.Join(err, s.store.Close())
	}
	return recovered, nil
}

func (s *service) begin(ctx context.Context) (recovered int, err error) {
	if recovered, err = s.store.Recover(ctx); err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	if s.secret, err = loadSecret(s.started); err != nil {
		return 0, err
	}
	s.metrics.Recovered(recovered)
	if log, ok := s.store.(*sqlite.Store); ok {
		s.metrics.Disk(func() (used, free int64) { return measure(s.started.Data) })
		s.metrics.Reusable(func() int64 { return reusable(log) })
		s.metrics.Retiring(func() int64 { return retiring(log) })
	}
	return recovered, s.apply(s.started)
}

// switched is a handler that can be put in another's place while requests come.
type switched struct{ to atomic.Pointer[http.Handler] }

// ServeHTTP implements http.Handler.
func (s *switched) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.to.Load()).ServeHTTP(w, r) }

// apply makes the settings hold for what comes from now on, or refuses them and leaves everything as it
// was. Live runs, and requests that are being served, keep what they began with.
func (s *service) apply(set settings) error {
	routes, err := set.routes()
	if err != nil {
		return err
	}
	level, err := levelOf(set.LogLevel)
	if err != nil {
		return err
	}
	if s.admin != nil {
		if err := set.Admin.guarded(s.admin); err != nil {
			return err
		}
	}
	// Nothing below can fail.
	s.connect(set, routes)
	s.server = s.newServer(set, routes)
	front := s.server.Handler()
	if s.tracer != nil {
		front = s.tracer.Continue(front)
	}
	if s.admin != nil {
		back := (&api.Admin{
			Server: s.server, Key: set.Admin.Key, Hosts: set.Admin.Hosts, Record: s.record, Metrics: s.figures,
			Base: base(s.address, s.started.TLS),
		}).Handler()
		s.back.to.Store(&back)
	}
	s.metrics.Prices(routes)
	s.level.SetLevel(level)
	s.front.to.Store(&front)
	s.now = set
	return nil
}

// ready says why the log takes nothing now, where it is not this process's alone.
func (s *service) ready() error {
	if log, ok := s.store.(*jetstream.Store); ok {
		return log.Ready()
	}
	return nil
}

// connect gives new runs their limits, and a connection pool of their own where its bounds are others
// than before.
func (s *service) connect(set settings, routes map[string]provider.Route) {
	observe := buffer.Observers{s.metrics}
	if s.tracer != nil {
		observe = append(observe, s.tracer)
	}
	if s.runs == nil {
		s.client = s.newClient(set, routes)
		s.runs = buffer.NewRuns(s.store, s.client, set.runs(observe), s.log)
		s.figures = s.metrics.Handler(s.runs)
		return
	}
	old := s.client
	before, err := s.now.routes()
	if err != nil || longestConnect(before) != longestConnect(routes) || s.now.Limits.ProviderHeaders != set.Limits.ProviderHeaders {
		s.client = s.newClient(set, routes)
	}
	s.runs.Configure(s.client, set.runs(observe))
	if old != s.client {
		old.CloseIdle() // what live runs use of it closes by itself when it has idled
	}
}

func (s *service) newClient(set settings, routes map[string]provider.Route) *provider.Client {
	return s.points.over(provider.NewClient(longestConnect(routes), set.Limits.ProviderHeaders))
}

func (s *service) newServer(set settings, routes map[string]provider.Route) *api.Server {
	server := &api.Server{
		Store: s.store, Ready: s.ready, Runs: s.runs, Client: s.client, Log: s.log,
		Callers:   api.NewCallers(s.secret, set.Auth.Keys),
		Pages:     s.pages,
		Tokens:    api.NewTokens(s.secret, []byte(s.started.PreviousSecret)),
		Origins:   set.CORS.Origins,
		Providers: routes,
		Leaving:   s.leaving,
		Limits: api.Limits{
			Body: set.Limits.Body, BodyTime: set.Limits.BodyTime, BodyGap: set.Limits.BodyGap, TTL: set.TTL, MaxTTL: set.Limits.MaxTTL, Hold: set.Limits.Hold,
			Heartbeat: set.Limits.Heartbeat, Write: set.Limits.Write,
		},
		Cloudflare: set.Compat.cloudflare(s.address),
	}
	if s.admin == nil {
		server.Metrics = s.figures
	}
	return server
}

// reload applies what the file, the variables and the flags say now. A mistake anywhere in it leaves
// everything as it was.
func (s *service) reload() {
	set, err := s.cmd.load()
	if err == nil {
		err = s.apply(set)
	}
	if err != nil {
		s.log.Error("settings refused, the old ones stay", zap.String("error", oneLine(err)))
		return
	}
	s.log.Info("settings reloaded", zap.String("config", s.cmd.Config))
	if keys := fixedChanges(s.started, set); len(keys) > 0 {
		s.log.Warn("these settings take a restart", zap.Strings("keys", keys))
	}
}
