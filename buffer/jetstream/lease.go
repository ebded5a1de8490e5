package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
)

// renewals is how often a lease is renewed within its time.
const renewals = 4

// lease is this node's sign of life: a message that the servers delete when it is not renewed.
type lease struct {
	s      *Store
	ctx    context.Context // ends the renewals, with the store or before
	stop   context.CancelFunc
	ending sync.WaitGroup

	mu    sync.Mutex // guards what follows
	since time.Time  // from when on it was renewed without a break
	last  time.Time  // the last renewal
}

// takeLease takes this node's, as soon as the servers have a leader for it, and renews it from then on.
func takeLease(ctx context.Context, s *Store) (*lease, error) {
	l := &lease{s: s}
	within, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	for {
		err := l.renew(within)
		if err == nil {
			break
		}
		if s.rest(within, err) != nil {
			return nil, fmt.Errorf("take lease: %w", err)
		}
	}
	l.ctx, l.stop = context.WithCancel(s.base)
	l.ending.Go(l.run)
	return l, nil
}

func (l *lease) subject() string { return l.s.layout.Name + ".node." + l.s.owner }

// renew tells the others that this node lives.
func (l *lease) renew(ctx context.Context) error {
	m := &nats.Msg{Subject: l.subject(), Header: nats.Header{}}
	m.Header.Set("Nats-TTL", l.s.cfg.Lease.String())
	answer, err := l.s.once(ctx, m, l.s.cfg.Lease/2)
	if err != nil {
		return err
	}
	var a struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &a); err != nil {
		return fmt.Errorf("decode acknowledgement: %w", err)
	}
	if a.Error != nil {
		return a.Error
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last) > l.s.cfg.Lease/2 { // the servers were silent: others may have been heard even less
		l.since = now
	}
	l.last = now
	return nil
}

// run renews until the store closes. A lease that could not be renewed in time changes nothing here: if
// the others have sealed a run meanwhile, its next append says so.
func (l *lease) run() {
	tick := time.NewTicker(l.s.cfg.Lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
			if err := l.renew(l.ctx); err != nil && l.ctx.Err() == nil {
				l.s.log.Warn("lease not renewed", zap.Error(err))
			}
		}
	}
}

// held reports whether the others still hear this node.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last) < l.s.cfg.Lease
}

// settled reports whether this node has been heard for so long that every living one was, too: after an
// outage of the servers all leases are over, and it is not said yet who is dead.
func (l *lease) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return now.Sub(l.last) < l.s.cfg.Lease/2 && now.Sub(l.since) > 2*l.s.cfg.Lease
}

// end gives the lease back at once. Without an answer it ends by itself.
func (l *lease) end() {
	l.stop()
	l.ending.Wait() // a renewal under way would come after
	data, err := json.Marshal(map[string]string{"filter": l.subject()})
	if err == nil {
		err = l.s.nc.Publish("$JS.API.STREAM.PURGE."+l.s.layout.nodes(), data)
	}
	if err == nil {
		err = l.s.nc.FlushTimeout(time.Second)
	}
	if err != nil {
		l.s.log.Warn("lease not given back", zap.Error(err))
	}
}

// living are the owners that hold a lease, as the leader of their stream knows.
func (s *Store) living(ctx context.Context) (map[string]bool, error) {
	state, err := s.state(ctx, s.layout.nodes(), ">")
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	living := map[string]bool{s.owner: true}
	for subject := range state.Subjects {
		living[subject[strings.LastIndexByte(subject, '.')+1:]] = true
	}
	return living, nil
}

// Probe implements buffer.Store. A lease is kept by as many servers as a run is.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.closed(); err != nil {
		return err
	}
	if err := s.lease.renew(ctx); err != nil {
		return fmt.Errorf("%w: %w", buffer.ErrStorage, err)
	}
	return nil
}
