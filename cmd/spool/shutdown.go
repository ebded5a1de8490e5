package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	sameSignal  = time.Second     // within which a second signal is the first one again
	tailTimeout = 5 * time.Second // for readers that have not taken their end at shutdown
)

// serve answers requests until ctx ends or a new process has taken over, then shuts down in the order of the data.
// A second signal aborts.
func (s *service) serve(ctx context.Context, l net.Listener, h *http.Server, stopAdmin func()) error {
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	beside := s.workBeside()

	var err error
	handed := false
	select {
	case <-ctx.Done():
	case err = <-failed:
	case pid := <-beside.upgraded:
		handed = true
		_ = l.Close() // the new process has its own
		beside.stopReading()
		stopAdmin()
		s.handOver(ctx, pid)
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGINT, syscall.SIGTERM)
	go abortOnSignal(again)
	closing, closed := context.WithCancel(context.Background())
	defer closed()
	go whenHung(closing, func() bool { return s.runs.Hung(hungPatience) }, s.abandon)
	if !handed {
		notify(stopping, s.log)
	}
	beside.stopReading() // the settings stay as they are from here on
	s.drain(h)
	stopAdmin() // it has shown all that till now
	beside.stopSweep()
	return errors.Join(err, s.close())
}

// beside is what goes on beside the requests. Each stop waits until it has stopped.
type beside struct {
	upgraded    chan int // the number of a new process that has taken over
	stopReading func()   // of the settings, and of the wish for an upgrade
	stopSweep   func()
}

func (s *service) workBeside() beside {
	working, stopWork := context.WithCancel(context.Background())
	reading, stopReading := context.WithCancel(working)
	upgraded := make(chan int, 1)
	var sweep, read sync.WaitGroup
	sweep.Go(func() { s.runs.Sweep(working) })
	read.Go(func() { s.changes.watch(reading, s.cmd.Config, s.reload) })
	read.Go(func() {
		if pid := s.upgrades(reading, s.asked); pid > 0 {
			upgraded <- pid
		}
	})
	return beside{upgraded, func() { stopReading(); read.Wait() }, func() { stopWork(); sweep.Wait() }}
}

// drain takes no new runs, lets those under way end within the grace, and lets their readers take the end.
func (s *service) drain(h *http.Server) {
	s.log.Info("draining", zap.Int("live", s.runs.Live()), zap.Duration("grace", s.now.Grace))
	s.server.Drain()
	s.runs.Drain(within(s.now.Grace))
	bounded, cancel := context.WithTimeout(context.Background(), tailTimeout)
	defer cancel()
	if err := h.Shutdown(bounded); err != nil {
		_ = h.Close() // readers that did not take their end are cut
	}
}

// close has the log finish what it has accepted, unless it hangs.
func (s *service) close() (err error) {
	late := time.AfterFunc(hungPatience, s.abandon)
	defer late.Stop()
	if err = s.store.Close(); err != nil {
		err = fmt.Errorf("close the log: %w", err)
	}
	s.client.CloseIdle()
	closeTracer(s.tracer, s.log)
	s.log.Info("stopped")
	return err
}

// abandon ends the process, as kill -9 would, where the log hangs.
func (s *service) abandon() {
	s.log.Error("the log answers nobody: it is left as it is, and the next start recovers", zap.Duration("patience", hungPatience))
	os.Exit(1)
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
