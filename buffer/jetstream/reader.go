package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Reader reads a log without being a node of it: it holds no lease, and nobody hears of it.
type Reader struct{ s *Store }

// OpenReader reads which runs there are in the log of that name; "" is DefaultName. The connection is the
// reader's own from then on.
func OpenReader(ctx context.Context, nc *nats.Conn, name string) (*Reader, error) {
	cfg, err := Config{Conn: nc, Name: name, UnsafeDurability: true}.complete()
	if err != nil {
		return nil, err
	}
	s := newStore(cfg)
	if s.layout, err = readLayout(ctx, nc, cfg.Name); err == nil {
		err = s.join(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read log %s: %w", cfg.Name, err), s.Close())
	}
	return &Reader{s}, nil
}

// Layout is how the log was created.
func (r *Reader) Layout() Layout { return r.s.layout }

// Get is as a Store's.
func (r *Reader) Get(ctx context.Context, id ulid.ULID) (buffer.Run, error) { return r.s.Get(ctx, id) }

// Read is as a Store's.
func (r *Reader) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	return r.s.Read(ctx, id, from, max)
}

// List is as a Store's.
func (r *Reader) List(ctx context.Context, f buffer.Filter) iter.Seq2[buffer.Run, error] {
	return r.s.List(ctx, f)
}

// Close ends the connection.
func (r *Reader) Close() error { return r.s.Close() }
