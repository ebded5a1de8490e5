package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// Patience bounds how a cut connection is repaired. Its zero value is the documented defaults.
type Patience struct {
	Tries      int           // in a row that gain nothing; default 30
	Elapsed    time.Duration // since the connection was cut, pauses included; default 1 min
	Backoff    time.Duration // about the first pause; each one doubles; default 100 ms
	MaxBackoff time.Duration // the longest pause, but for a Retry-After; default 5 s
}

func (p Patience) withDefaults() Patience {
	set := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	if p.Tries <= 0 {
		p.Tries = 30
	}
	set(&p.Elapsed, time.Minute)
	set(&p.Backoff, 100*time.Millisecond)
	set(&p.MaxBackoff, 5*time.Second)
	return p
}

// pause is how long to wait after so many tries: half of it by chance, so that the many readers of
// a buffer that has restarted do not all come back at once.
func (p Patience) pause(tries int) time.Duration {
	d := p.MaxBackoff
	if tries < 32 && p.Backoff < p.MaxBackoff>>tries {
		d = p.Backoff << tries
	}
	return d/2 + rand.N(d/2+1)
}

// errSpent ends a trouble that has lasted as long as it may.
var errSpent = errors.New("patience has ended")

// trouble is a time in which nothing is gained.
type trouble struct {
	patience Patience
	tries    int
	since    time.Time
}

// over begins anew: something was gained.
func (t *trouble) over() { t.tries = 0 }

// wait pauses before the next try, as long as the last failure asks for at least. It returns errSpent
// where no try is left, or the context's error.
func (t *trouble) wait(ctx context.Context, failure error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.tries == 0 {
		t.since = time.Now()
	}
	pause := t.patience.pause(t.tries)
	if e, ok := errors.AsType[*Error](failure); ok {
		pause = max(pause, e.RetryAfter)
	}
	if t.tries >= t.patience.Tries || time.Since(t.since)+pause > t.patience.Elapsed {
		return errSpent
	}
	t.tries++
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// insist tries again and again, until a try succeeds or fails for good, or patience has ended, and
// returns how the last one failed.
func (t *trouble) insist(ctx context.Context, failure error, try func() error) error {
	for failure != nil && mayPass(failure) {
		if t.wait(ctx, failure) != nil {
			return failure
		}
		failure = try()
	}
	return failure
}

// isUnknown reports whether Spool itself said that there is no such run.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == wire.CodeNotFound
}
