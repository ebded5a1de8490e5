package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/spool-dev/spool/api/console"
	"github.com/spool-dev/spool/buffer/sqlite"
)

type adminSettings struct {
	Listen string   `koanf:"listen" fixed:"true" help:"Like 127.0.0.1:8788; empty: no admin listener."`
	Key    string   `koanf:"key" secret:"true" help:"What a request must bring, at least 16 characters; needed beyond the loopback."`
	Open   bool     `koanf:"open" default:"false" help:"Beyond the loopback without a key, because a proxy asks for a credential."`
	TLS    bool     `koanf:"tls" default:"false" fixed:"true" help:"Serve it with the certificate of tls, too."`
	Hosts  []string `koanf:"hosts" help:"Names by which it is reached, like spool.internal; addresses and localhost need none."`
}

func (a adminSettings) validate() error {
	var all []error
	if a.Key != "" && len(a.Key) < 16 {
		all = append(all, errors.New("admin.key: a key needs at least 16 characters"))
	}
	for i, name := range a.Hosts {
		if strings.ContainsAny(name, ":/") {
			all = append(all, fmt.Errorf("admin.hosts[%d]: %q must be a name alone, without scheme and port", i, name))
		}
	}
	return errors.Join(append(all, a.checkListen())...)
}

// checkListen refuses an address that cannot be, or that others reach without a credential.
func (a adminSettings) checkListen() error {
	if a.Listen == "" {
		return nil
	}
	if err := checkAddress("admin.listen", a.Listen); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(a.Listen) // it was checked
	if host != "" && net.ParseIP(host) == nil {
		return nil // a name: the listener tells
	}
	addr, err := net.ResolveTCPAddr("tcp", a.Listen) // nothing is looked up but the port's name
	if err != nil {
		return fmt.Errorf("admin.listen: %w", err)
	}
	return a.guarded(addr)
}

// The times of the admin listener. None of its answers is long but profiles and streams, which set
// deadlines of their own.
const (
	adminRead  = 10 * time.Second
	adminWrite = 30 * time.Second
	adminHead  = 64 << 10 // bytes of a request's headers
)

// listen is the admin listener: the one that was given, or else at its address; nil where there is
// neither. It shows the runs of all callers, so beyond the loopback it needs a key, or the word that
// somebody else asks for one.
func (a adminSettings) listen(given net.Listener) (net.Listener, error) {
	if a.Listen == "" && given == nil {
		return nil, nil
	}
	l, err := open(given, a.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin.listen on %s: %w", a.Listen, cause(err))
	}
	if err := a.guarded(l.Addr()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// edge is l as it is served: with tls it speaks what t says.
func (a adminSettings) edge(l net.Listener, t tlsSettings, log *zap.Logger) (net.Listener, error) {
	if l == nil || !a.TLS {
		return l, nil
	}
	return t.wrap(l, log)
}

// guarded refuses an address that others reach without a credential.
func (a adminSettings) guarded(addr net.Addr) error {
	if a.Key == "" && !a.Open && !loopback(addr) {
		return fmt.Errorf("admin.listen: %s is not loopback: set admin.key, or admin.open where a proxy asks for a credential", addr)
	}
	return nil
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// newAdminServer is the admin listener's own server.
func newAdminServer(h http.Handler, log *zap.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: adminRead, ReadTimeout: adminRead, WriteTimeout: adminWrite,
		IdleTimeout: defaultIdle, MaxHeaderBytes: adminHead, ErrorLog: zap.NewStdLog(log),
	}
}

// measure is what the files of the folder take, and what is free where it is; 0 for what cannot be told.
func measure(dir string) (used, free int64) {
	files, _ := os.ReadDir(dir) // an empty list says it
	for _, f := range files {
		if info, err := os.Stat(filepath.Join(dir, f.Name())); err == nil && info.Mode().IsRegular() {
			used += info.Size()
		}
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err == nil {
		free = int64(fs.Bavail) * int64(fs.Bsize)
	}
	return used, free
}

// reusable is what compacting the log would give back; 0 where it cannot be told.
func reusable(store *sqlite.Store) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), adminRead)
	defer cancel()
	room, _ := store.Room(ctx) // zero where it failed
	return room.Reusable
}

// retiring is how many runs need another key than the first one; 0 where it cannot be told.
func retiring(store *sqlite.Store) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), adminRead)
	defer cancel()
	runs, _ := store.Retiring(ctx) // zero where it failed
	return runs
}

// serveAdmin serves the admin listener and keeps the record that it shows, until stop is called.
func serveAdmin(l net.Listener, record *console.Record, pages http.Handler, log *zap.Logger) (stop func()) {
	h := newAdminServer(pages, log)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { record.Keep(ctx) })
	work.Go(func() {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("admin listener has failed", zap.Error(err)) // the buffer goes on
		}
	})
	return func() {
		cancel()
		_ = h.Close() // pages that watch are cut: they come back by themselves
		work.Wait()
	}
}

// base is where agents reach the listener, as far as its address tells.
func base(addr net.Addr, t tlsSettings) string {
	scheme, host := "http://", addr.String()
	if t.Cert != "" {
		scheme = "https://"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && (len(tcp.IP) == 0 || tcp.IP.IsUnspecified()) {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return scheme + host
}
