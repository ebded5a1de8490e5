package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer/sqlite"
)

const (
	// linger is how long connections on which nobody asks stay open after a hand-over. Who asks meanwhile is
	// answered, and comes on a new one next time.
	linger     = 10 * time.Second
	lingerLook = 50 * time.Millisecond
)

// traffic counts what is open.
type traffic struct {
	connections atomic.Int64
	requests    atomic.Int64
}

func (t *traffic) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		t.connections.Add(1)
	case http.StateClosed, http.StateHijacked: // a request goes on with what it has hijacked
		t.connections.Add(-1)
	}
}

func (t *traffic) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.requests.Add(1)
		defer t.requests.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// upgrades starts a new process for each SIGUSR2, until one of them is ready, and returns its number; 0 when ctx
// has ended before.
func (s *service) upgrades(ctx context.Context, asked <-chan os.Signal) (pid int) {
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-asked:
		}
		s.log.Info("upgrade begun", zap.String("program", s.next.program))
		pid, err := s.next.start(ctx, upgradePatience)
		if err == nil {
			return pid
		}
		s.log.Error("upgrade failed, nothing has changed", zap.String("program", s.next.program), zap.String("error", oneLine(err)))
	}
}

// handOver leaves the listeners to the process pid, which accepts already. This one answers what has come to
// it, and ends when its runs and its answers on provider routes have; ctx ends that wait.
//
// The listener is closed, and nothing else: a server that shuts down drops what comes on connections that it
// has accepted. That is the very last.
func (s *service) handOver(ctx context.Context, pid int) {
	s.log.Info("handed over", zap.Int("pid", pid), zap.Int("live", s.runs.Live()))
	notify("MAINPID="+strconv.Itoa(pid), s.log)
	if log, ok := s.store.(*sqlite.Store); ok {
		log.Notice()
	}
	s.runs.HandOver()
	s.leave()
	deadline := time.Now().Add(linger)
	tick := time.NewTicker(lingerLook)
	defer tick.Stop()
	for s.runs.Live() > 0 || s.traffic.requests.Load() > 0 || s.traffic.connections.Load() > 0 && time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listenForUpgrades must come early: the signal ends a process that does not expect it.
func listenForUpgrades() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	return asked
}
