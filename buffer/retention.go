package buffer

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"
)

// Ack releases an ended run at its caller's word: new readers are refused, tails under way finish.
// ErrLive while the run is live. Again is the same.
func (rs *Runs) Ack(ctx context.Context, id ulid.ULID) (Run, error) {
	if _, err := rs.store.Release(ctx, id); err != nil {
		return Run{}, err
	}
	return rs.store.Get(ctx, id)
}

// probePause is the wait between two looks whether a log that refuses takes a write again.
const probePause = time.Second

// Sweep gives up what has had its time, every Config.Sweep, and finds out when a log that has refused a write can
// be written again, until ctx ends. It needs no traffic.
func (rs *Runs) Sweep(ctx context.Context) {
	tick := time.NewTicker(rs.cfg().Sweep)
	defer tick.Stop()
	look := time.NewTicker(probePause)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			rs.sweep(ctx)
		case <-look.C:
			rs.probe(ctx)
		}
	}
}

func (rs *Runs) sweep(ctx context.Context) {
	open := func(id ulid.ULID) bool { return rs.Readers(id) > 0 }
	swept, err := rs.store.Sweep(ctx, time.Now(), open)
	if err != nil && ctx.Err() == nil {
		rs.log.Error("sweep", zap.Error(err))
		return
	}
	if swept != (Swept{}) {
		rs.log.Info("swept", zap.Int("released", swept.Released), zap.Int64("chunks", swept.Chunks), zap.Int("forgotten", swept.Forgotten), zap.Int("rewrapped", swept.Rewrapped))
	}
}
