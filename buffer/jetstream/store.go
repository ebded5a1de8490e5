// Package jetstream is the engine for more than one machine: runs in the replicated streams of a NATS
// cluster, which every node of Spool can read, and of which each run has one node that may append.
//
//	Create, Append, Attempt, Seal, Release, Reuse, Sweep, Recover
//	   │ read the run's last message, say what follows
//	   ▼
//	publish, if that is still the last ──▶ stream RUNS_k, subject <name>.run.k.<id> ──▶ acknowledgement
//	   │ refused: read again                     │ headers, to every node
//	   ▼                                         ▼
//	index ◀── what was committed here     follow ──▶ index ──▶ bells
//	   │
//	Read: the run from the index, its chunks by direct get; Get and what the index lacks: the stream's leader
//
// The condition is the whole of the fence: each message names the sequence of the one before it, so
// that positions are dense, a run is created once, and nothing is appended to a run that was sealed,
// by whomever, wherever. What a node's index says may be late; it is never the ground on which
// something is stored.
//
// Beside the runs there are KEYS, where a caller's key names the run that has it, and NODES, where each
// node keeps its lease.
package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/bell"
)

// Config says where the log is.
type Config struct {
	Conn  *nats.Conn       // to the cluster; the store's own from then on, which closes it
	Name  string           // of the log, as Init was told it; "" is DefaultName
	Log   *zap.Logger      // nil is silent
	Lease time.Duration    // after which a node that is not heard of is dead; 0 is 2 s, below 1 s is not possible
	Reap  time.Duration    // between two looks for dead nodes; 0 is 500 ms, below 0 none: Recover is for the caller
	Now   func() time.Time // nil is time.Now

	// UnsafeDurability takes a log that has fewer than three replicas, or whose servers are not known to
	// flush what they acknowledge.
	UnsafeDurability bool
}

// poll is how long a wake-up can be lost for.
const poll = time.Second

// Store is a buffer.Store in a NATS cluster.
type Store struct {
	cfg    Config
	log    *zap.Logger
	nc     *nats.Conn
	line   line
	layout Layout
	owner  string
	lease  *lease
	index  *index
	bells  *bell.Bells
	halts  halts
	seals  seals
	deaf   [maxShards]atomic.Bool // by shard: nobody has told of its messages of late

	patience patience

	commits atomic.Int64
	base    context.Context // ends with Close
	done    sync.WaitGroup
	close   sync.Once
	cancel  context.CancelFunc
}

var _ buffer.Store = (*Store)(nil)

// Open joins the cluster as a node of its own: it takes a lease, and reads which runs there are. It
// refuses a log that Init has not created, one that would not survive a server
// (ErrUnsafe), and one that would not survive the power of all of them (ErrLazy). The connection is closed where it fails.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := newStore(cfg)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", cfg.Name, err), s.Close())
	}
	s.log.Info("log opened", zap.String("name", cfg.Name), zap.Int("shards", s.layout.Shards), zap.String("owner", s.owner), zap.Int("runs", s.index.len()))
	return s, nil
}

func newStore(cfg Config) *Store {
	base, cancel := context.WithCancel(context.Background())
	s := &Store{
		cfg: cfg, log: cfg.Log, nc: cfg.Conn, owner: ulid.MustNew(ulid.Now(), rand.Reader).String(),
		index: newIndex(), bells: bell.New(), base: base, cancel: cancel,
		halts: halts{until: map[ulid.ULID]time.Time{}}, seals: seals{of: map[ulid.ULID]chan struct{}{}},
	}
	s.line.renew(base)
	s.nc.SetDisconnectErrHandler(func(*nats.Conn, error) { s.line.renew(base) })
	return s
}

func (c Config) complete() (Config, error) {
	if c.Conn == nil {
		return c, errors.New("open log: no connection")
	}
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Lease == 0 {
		c.Lease = 2 * time.Second
	}
	if c.Lease < time.Second {
		return c, fmt.Errorf("open log: a lease of %s is shorter than a second", c.Lease)
	}
	if c.Reap == 0 {
		c.Reap = 500 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if s.layout, err = readLayout(ctx, s.nc, s.cfg.Name); err != nil {
		return err
	}
	if err := s.layout.safe(); err != nil && !s.cfg.UnsafeDurability {
		return err
	}
	if s.lease, err = takeLease(ctx, s); err != nil {
		return err
	}
	if err := s.heedHalts(); err != nil {
		return fmt.Errorf("heed halts: %w", err)
	}
	if err := s.join(ctx); err != nil {
		return err
	}
	s.done.Go(s.poll)
	if s.cfg.Reap > 0 {
		s.done.Go(s.reap)
	}
	return nil
}

// join reads which runs there are, and hears of what becomes of them from then on.
func (s *Store) join(ctx context.Context) error {
	for k := range s.layout.Shards {
		if err := s.follow(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the lease back, so that others seal the runs that this node leaves live, and ends the
// connection. Every bell rings.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.cancel()
		s.done.Wait()
		if s.lease != nil {
			s.lease.end()
			s.log.Info("log closed", zap.String("owner", s.owner))
		}
		s.bells.Close()
		s.nc.Close()
	})
	return nil
}

// Watch implements buffer.Store.
func (s *Store) Watch(id ulid.ULID) (changed <-chan struct{}, stop func()) { return s.bells.Watch(id) }

// Wake implements buffer.Store.
func (s *Store) Wake(id ulid.ULID) { s.bells.Ring(id) }

// poll has every tail look once in a while, should a wake-up have been lost.
func (s *Store) poll() {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
			s.bells.RingAll()
		}
	}
}

// now is the clock in the resolution that the SQLite engine has too.
func (s *Store) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

// Ready says why nothing can be stored now: the servers have not heard this node for as long as it takes
// to be given up for dead.
func (s *Store) Ready() error {
	if err := s.closed(); err != nil {
		return err
	}
	if !s.lease.held() {
		return fmt.Errorf("%w: its servers do not answer", buffer.ErrStorage)
	}
	return nil
}

// closed is ErrClosed after Close.
func (s *Store) closed() error {
	if s.base.Err() != nil {
		return buffer.ErrClosed
	}
	return nil
}
