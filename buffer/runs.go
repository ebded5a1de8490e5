package buffer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/provider"
)

// Config holds what Runs needs to be told. Zero values are the documented defaults.
type Config struct {
	MaxChunk  int           // bytes of one chunk; default 64 MiB
	MaxRun    int64         // bytes of one run; default 1 GiB
	MaxEvents int64         // chunks of one run; default 4 Mi, since each costs a row, however small
	MaxBodies int64         // bytes of the requests of all runs that may have to be sent again; default 512 MiB
	Sweep     time.Duration // between two sweeps; default 10 s
	NoDedupe  bool          // an SDK's retry without a key never finds the run of its first send
	Callers   CallerLimits  // what one caller may use; zero is without limit
	Queue     QueueLimits   // how calls wait for a route that is busy
	Observe   Observer      // is told what happens; nil is not
}

func (c Config) withDefaults() Config {
	if c.MaxChunk <= 0 {
		c.MaxChunk = 64 << 20
	}
	if c.MaxRun <= 0 {
		c.MaxRun = 1 << 30
	}
	if c.MaxEvents <= 0 {
		c.MaxEvents = 4 << 20
	}
	if c.MaxBodies <= 0 {
		c.MaxBodies = 512 << 20
	}
	if c.Sweep <= 0 {
		c.Sweep = 10 * time.Second
	}
	return c
}

// Runs starts runs and keeps their drains going. The drains run under its own context: a request
// that ends never ends a run. It is safe for concurrent use.
type Runs struct {
	store Store
	log   *zap.Logger
	setup atomic.Pointer[setup] // what new runs start with

	base   context.Context // ends with Drain
	cancel context.CancelCauseFunc
	drains sync.WaitGroup

	mu       sync.Mutex // guards what follows; never held over I/O
	draining bool
	handed   bool // see HandOver
	live     map[ulid.ULID]*drain
	readers  map[ulid.ULID]*readers

	writes   writes
	rests    *rests
	callers  *callers
	bodies   *bodies
	circuits *circuits
	slots    *slots
	inboxes  inboxes
	places   *places
	stored   stored
}

// setup is what a run keeps from its start to its end, whatever is configured meanwhile.
type setup struct {
	cfg    Config
	client *provider.Client
}

// NewRuns returns a Runs over store that sends through client. Drain must be called.
func NewRuns(store Store, client *provider.Client, cfg Config, log *zap.Logger) *Runs {
	base, cancel := context.WithCancelCause(context.Background())
	rs := &Runs{
		store: store, log: log,
		base: base, cancel: cancel,
		live:    map[ulid.ULID]*drain{},
		readers: map[ulid.ULID]*readers{},
		callers: newCallers(cfg.Callers), circuits: newCircuits(), slots: newSlots(cfg.Queue),
		places: newPlaces(), rests: newRests(),
	}
	cfg = cfg.withDefaults()
	rs.bodies = newBodies(cfg.MaxBodies)
	rs.setup.Store(&setup{cfg: cfg, client: client})
	return rs
}

// Configure makes runs that start from now on use client and cfg; live ones go on with what they have.
// The limits on callers, queues and bodies hold for all, and cfg.Sweep stays as it was.
func (rs *Runs) Configure(client *provider.Client, cfg Config) {
	rs.callers.limit(cfg.Callers)
	rs.slots.limit(cfg.Queue)
	cfg = cfg.withDefaults()
	rs.bodies.bound(cfg.MaxBodies)
	rs.setup.Store(&setup{cfg: cfg, client: client})
}

func (rs *Runs) cfg() Config { return rs.setup.Load().cfg }

// Cancel stops a live run and returns it as it ended; an ended run is returned as it is. What is
// stored stays readable.
func (rs *Runs) Cancel(ctx context.Context, id ulid.ULID) (Run, error) {
	if err := rs.stop(ctx, id, CancelAsked); err != nil {
		return Run{}, err
	}
	if _, err := rs.store.Seal(ctx, id, Cancelled, CancelAsked); err != nil { // a run of another process
		return Run{}, err
	}
	return rs.store.Get(ctx, id)
}

// stop tells the drain to end, if it is ours, and waits for it.
func (rs *Runs) stop(ctx context.Context, id ulid.ULID, reason Reason) error {
	rs.mu.Lock()
	d := rs.live[id]
	rs.mu.Unlock()
	if d == nil {
		return nil
	}
	d.stop(stopped{Cancelled, reason})
	select {
	case <-d.done:
		return nil
	case <-d.stuck:
		return ErrStorage
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Live is how many drains are under way in this process.
func (rs *Runs) Live() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.live)
}

func (rs *Runs) isDraining() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.draining
}

// Drain takes no new runs from now on and waits for the live ones until ctx ends; then it stops
// them with reason shutdown and waits until that is stored.
func (rs *Runs) Drain(ctx context.Context) {
	rs.mu.Lock()
	rs.draining = true
	rs.mu.Unlock()
	done := make(chan struct{})
	go func() { rs.drains.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		rs.cancel(stopped{Interrupted, Shutdown})
		<-done
	}
	rs.cancel(nil)
}
