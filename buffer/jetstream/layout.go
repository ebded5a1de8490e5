package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"
)

// DefaultName is that of the log where none is given.
const DefaultName = "spool"

// SafeReplicas is how many copies survive the loss of one.
const SafeReplicas = 3

const (
	maxShards   = 64 // more than there are servers in a cluster
	maxReplicas = 5  // as many as NATS allows
)

// Why a log is refused.
var (
	// ErrUnsafe: what it acknowledges can be lost with one server.
	ErrUnsafe = errors.New("the log needs three replicas")
	// ErrLazy: what the servers acknowledge can be lost with the power of all of them.
	ErrLazy = errors.New("sync_interval is not always")
	// ErrNoLog: nobody has created it.
	ErrNoLog = errors.New("there is no such log: spool cluster init creates it")
)

// Layout is how a log lies in its cluster. Shards and Name are for ever.
type Layout struct {
	Name     string // letters, digits, - and _; "" is DefaultName
	Shards   int    // streams that runs are spread over; 0 is one. As many as there are servers is a good number
	Replicas int    // of each message; 0 is three
	Flushes  bool   // the servers are known to flush before they acknowledge
}

// safe says why what the log acknowledges can be lost; nil where it cannot.
func (l Layout) safe() error {
	if l.Replicas < SafeReplicas {
		return fmt.Errorf("%w: it has %d", ErrUnsafe, l.Replicas)
	}
	if !l.Flushes {
		return fmt.Errorf("%w, as far as is known", ErrLazy)
	}
	return nil
}

// The streams' metadata.
const (
	metaShards  = "spool.shards"
	metaFormat  = "spool.format"
	metaFlushes = "spool.flushes"
)

func (l Layout) complete() (Layout, error) {
	if l.Name == "" {
		l.Name = DefaultName
	}
	if l.Shards == 0 {
		l.Shards = 1
	}
	if l.Replicas == 0 {
		l.Replicas = SafeReplicas
	}
	return l, l.Validate()
}

// Validate refuses what no log can have. A value that is zero is its default.
func (l Layout) Validate() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	switch {
	case strings.Trim(l.Name, letters) != "":
		return fmt.Errorf("name: %q must be letters, digits, - and _", l.Name)
	case l.Shards < 0 || l.Shards > maxShards:
		return fmt.Errorf("shards: %d must be 1 to %d", l.Shards, maxShards)
	case l.Replicas < 0 || l.Replicas > maxReplicas:
		return fmt.Errorf("replicas: %d must be 1 to %d", l.Replicas, maxReplicas)
	}
	return nil
}

func (l Layout) keys() string       { return l.Name + "_KEYS" }
func (l Layout) nodes() string      { return l.Name + "_NODES" }
func (l Layout) runs(k int) string  { return l.Name + "_RUNS_" + strconv.Itoa(k) }
func (l Layout) under(k int) string { return l.Name + ".run." + strconv.Itoa(k) + "." }

// shard is which of the streams has the run.
func (l Layout) shard(id ulid.ULID) int {
	h := fnv.New32a()
	_, _ = h.Write(id[:]) // a hash takes everything
	return int(h.Sum32() % uint32(l.Shards))
}

// place is where the run's messages are.
func (l Layout) place(id ulid.ULID) (stream, subject string) {
	k := l.shard(id)
	return l.runs(k), l.under(k) + id.String()
}

// Init creates the log's streams. Again it changes nothing but their replicas, and what is known of their
// servers.
func Init(ctx context.Context, nc *nats.Conn, l Layout) error {
	l, err := l.complete()
	if err != nil {
		return err
	}
	js, err := open(nc)
	if err != nil {
		return err
	}
	if have, err := readLayout(ctx, nc, l.Name); err == nil && have.Shards != l.Shards {
		return fmt.Errorf("shards: the log has %d for ever, and not %d", have.Shards, l.Shards)
	}
	for _, c := range l.streams() {
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return fmt.Errorf("create stream %s: %w", c.Name, err)
		}
	}
	return nil
}

func (l Layout) streams() []jetstream.StreamConfig {
	base := jetstream.StreamConfig{
		// Not compressed: a server that is killed while it packs a block cannot read its replica again
		// ("s2: unsupported input", 2.15.3).
		Replicas: l.Replicas, Storage: jetstream.FileStorage, AllowDirect: true,
		Discard: jetstream.DiscardNew, // never an old event for a new one
		// The commit's own condition is what keeps it from being stored twice.
		Duplicates: time.Second,
		Metadata:   map[string]string{metaShards: strconv.Itoa(l.Shards), metaFormat: strconv.Itoa(format), metaFlushes: strconv.FormatBool(l.Flushes)},
	}
	keys, nodes := base, base
	keys.Name, keys.Subjects, keys.MaxMsgsPerSubject = l.keys(), []string{l.Name + ".key.>"}, 1
	keys.Discard = jetstream.DiscardOld
	nodes.Name, nodes.Subjects, nodes.MaxMsgsPerSubject = l.nodes(), []string{l.Name + ".node.>"}, 1
	nodes.Discard, nodes.AllowMsgTTL = jetstream.DiscardOld, true
	var all []jetstream.StreamConfig
	for k := range l.Shards {
		runs := base
		runs.Name, runs.Subjects, runs.AllowAtomicPublish = l.runs(k), []string{l.under(k) + ">"}, true
		all = append(all, runs)
	}
	return append(all, nodes, keys) // keys last: it says that all are there
}

// ReadLayout is how the log of that name was created, or ErrNoLog; "" is DefaultName.
func ReadLayout(ctx context.Context, nc *nats.Conn, name string) (Layout, error) {
	return readLayout(ctx, nc, cmp.Or(name, DefaultName))
}

// readLayout is how the log of that name was created.
func readLayout(ctx context.Context, nc *nats.Conn, name string) (Layout, error) {
	l := Layout{Name: name}
	js, err := open(nc)
	if err != nil {
		return l, err
	}
	stream, err := js.Stream(ctx, l.keys())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return l, ErrNoLog
	}
	if err != nil {
		return l, err
	}
	c := stream.CachedInfo().Config
	if v, err := strconv.Atoi(c.Metadata[metaFormat]); err != nil || v > format {
		return l, fmt.Errorf("format %q: this program knows %d", c.Metadata[metaFormat], format)
	}
	l.Shards, err = strconv.Atoi(c.Metadata[metaShards])
	if err != nil || l.Shards < 1 || l.Shards > maxShards {
		return l, fmt.Errorf("shards %q: want a number from 1 to %d", c.Metadata[metaShards], maxShards)
	}
	l.Replicas, l.Flushes = c.Replicas, c.Metadata[metaFlushes] == strconv.FormatBool(true)
	for k := range l.Shards {
		stream, err := js.Stream(ctx, l.runs(k))
		if err != nil {
			return l, fmt.Errorf("stream %s: %w", l.runs(k), err)
		}
		l.Replicas = min(l.Replicas, stream.CachedInfo().Config.Replicas)
	}
	return l, nil
}
