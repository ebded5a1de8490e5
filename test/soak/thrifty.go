package main

import (
	"context"
	"time"

	"github.com/prometheus/procfs"
)

// thrifty bounds the processor time of some processes: who asks may go on when they have taken no more
// than their share of the time since it began.
type thrifty struct {
	procs []procfs.Proc
	share float64 // cores
	began time.Time
	used  float64 // seconds, when it began
}

func (t *thrifty) begin(share float64, pids ...int) (err error) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return err
		}
		t.procs = append(t.procs, p)
	}
	t.share, t.began = share, time.Now()
	t.used, err = t.cpu()
	return err
}

// cpu is the seconds that the processes have taken so far.
func (t *thrifty) cpu() (sum float64, err error) {
	for _, p := range t.procs {
		s, err := p.Stat()
		if err != nil {
			return 0, err
		}
		sum += s.CPUTime()
	}
	return sum, nil
}

// cores is how many the processes have taken since it began, on average.
func (t *thrifty) cores() (float64, error) {
	used, err := t.cpu()
	return (used - t.used) / time.Since(t.began).Seconds(), err
}

// wait returns when the share allows more, or ctx's error.
func (t *thrifty) wait(ctx context.Context) error {
	for {
		used, err := t.cpu()
		if err != nil {
			return err
		}
		ahead := (used-t.used)/t.share - time.Since(t.began).Seconds()
		if ahead <= 0 {
			return ctx.Err()
		}
		if err := pause(ctx, time.Duration(ahead*float64(time.Second))); err != nil {
			return err
		}
	}
}
