package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/jetstream"
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// storeSettings say in which NATS cluster the runs are, where that is not the data folder.
type storeSettings struct {
	URL         string   `koanf:"url" fixed:"true" help:"Like nats://n1:4222,nats://n2:4222,nats://n3:4222, or tls://; empty: the data folder, of which one node alone can be."`
	Name        string   `koanf:"name" default:"spool" fixed:"true" help:"Of the log, as spool cluster init was told it: letters, digits, - and _."`
	Credentials string   `koanf:"credentials" fixed:"true" holds:"secret" help:"A NATS user's .creds file."`
	CA          string   `koanf:"ca" fixed:"true" help:"PEM: who has issued the servers' certificates; empty: whom the system trusts."`
	Cert        string   `koanf:"cert" fixed:"true" help:"PEM: this node's certificate, where the servers ask for one. With key."`
	Key         string   `koanf:"key" fixed:"true" holds:"secret" help:"Its private key."`
	Monitors    []string `koanf:"monitors" fixed:"true" help:"Base URLs of the servers' monitoring ports, which tell whether they flush; absent: port 8222 of each."`
	Unsafe      bool     `koanf:"unsafe_durability" default:"false" fixed:"true" help:"Take a log that a server's end, or a power cut, can take acknowledged events from: fewer than three replicas, or servers that are not known to have sync_interval: always."`
}

// storeFlags are those of the settings.
type storeFlags struct {
	Store            string   `env:"SPOOL_STORE" placeholder:"nats://HOST:PORT,…" help:"NATS servers that keep the runs, for more than one node; without it, the data folder does."`
	StoreName        string   `env:"SPOOL_STORE_NAME" placeholder:"NAME" help:"Name of the log there (default spool)."`
	StoreCredentials string   `env:"SPOOL_STORE_CREDENTIALS" placeholder:"FILE" help:"A NATS user's .creds file."`
	StoreCA          string   `name:"store-ca" env:"SPOOL_STORE_CA" placeholder:"FILE" help:"Who has issued the servers' certificates, PEM."`
	StoreCert        string   `env:"SPOOL_STORE_CERT" placeholder:"FILE" help:"This node's certificate, where the servers ask for one, PEM. With --store-key."`
	StoreKey         string   `env:"SPOOL_STORE_KEY" placeholder:"FILE" help:"Its private key, PEM."`
	StoreMonitor     []string `env:"SPOOL_STORE_MONITOR" placeholder:"URL" help:"A server's monitoring port; repeatable (default port 8222 of each server)."`
}

func (f storeFlags) override(s *storeSettings) {
	override(&s.URL, f.Store)
	override(&s.Name, f.StoreName)
	override(&s.Credentials, f.StoreCredentials)
	override(&s.CA, f.StoreCA)
	override(&s.Cert, f.StoreCert)
	override(&s.Key, f.StoreKey)
	if len(f.StoreMonitor) > 0 {
		s.Monitors = f.StoreMonitor
	}
}

// settings are the flags alone, of a command that reads no file.
func (f storeFlags) settings() (storeSettings, error) {
	s := storeSettings{Name: jetstream.DefaultName}
	f.override(&s)
	return s, asMisuse(s.validate())
}

// monitorPort is where NATS servers listen for those who want to know.
const monitorPort = "8222"

func (s storeSettings) access() jetstream.Access {
	return jetstream.Access{URL: s.URL, Credentials: s.Credentials, CA: s.CA, Cert: s.Cert, Key: s.Key}
}

func (s storeSettings) validate() error {
	if s.URL == "" {
		return nil
	}
	var all []error
	if _, err := s.access().Addresses(); err != nil {
		all = append(all, fmt.Errorf("store.url: %w", err))
	}
	if err := (jetstream.Layout{Name: s.Name}).Validate(); err != nil {
		all = append(all, fmt.Errorf("store.%w", err))
	}
	if s.Cert != "" && s.Key == "" {
		all = append(all, errors.New("store.key: needed with store.cert, whose private key it is"))
	}
	if s.Key != "" && s.Cert == "" {
		all = append(all, errors.New("store.cert: needed with store.key, whose certificate it is"))
	}
	for i, base := range s.Monitors {
		if _, err := provider.ParseBase(base); err != nil {
			all = append(all, fmt.Errorf("store.monitors[%d]: %w", i, err))
		}
	}
	return errors.Join(all...)
}

// monitors are where the servers tell what they are set to.
func (s storeSettings) monitors() []string {
	if len(s.Monitors) > 0 {
		return s.Monitors
	}
	var all []string
	addresses, _ := s.access().Addresses() // they were checked
	for _, u := range addresses {
		all = append(all, "http://"+net.JoinHostPort(u.Hostname(), monitorPort))
	}
	return all
}

// open takes the log for this node: in the cluster, or in the data folder, which another process may have too
// where it is to be joined, and where points may step in.
func (s settings) open(ctx context.Context, log *zap.Logger, join bool, points func(sqlite.Point) error) (buffer.Store, error) {
	if s.Store.URL == "" {
		keys, err := s.Encryption.keys()
		if err != nil {
			return nil, err
		}
		return sqlite.Open(ctx, sqlite.Config{Dir: s.Data, Sync: s.Sync, Window: s.Limits.Window, Log: log, Keys: keys, Join: join, Fault: points})
	}
	nc, err := jetstream.Dial(s.Store.access())
	if err != nil {
		return nil, err
	}
	store, err := jetstream.Open(ctx, jetstream.Config{Conn: nc, Name: s.Store.Name, Log: log, UnsafeDurability: s.Store.Unsafe})
	if errors.Is(err, jetstream.ErrUnsafe) || errors.Is(err, jetstream.ErrLazy) {
		err = fmt.Errorf("%w: change that and say so with spool cluster init, or take the risk with --unsafe-durability", err)
	}
	if err != nil {
		return nil, err
	}
	return store, nil
}

// where names the log, for people.
func (s settings) where() string {
	if s.Store.URL == "" {
		return s.Data
	}
	return s.Store.where()
}

func (s storeSettings) where() string { return s.Name + " on " + strings.ReplaceAll(s.URL, ",", " ") }

// reading is a log that is only looked at.
type reading interface {
	Get(ctx context.Context, id ulid.ULID) (buffer.Run, error)
	Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error)
	List(ctx context.Context, f buffer.Filter) iter.Seq2[buffer.Run, error]
	Close() error
}

// read opens the log of a cluster to look at it.
func (s storeSettings) read(ctx context.Context) (*jetstream.Reader, error) {
	nc, err := jetstream.Dial(s.access())
	if err != nil {
		return nil, err
	}
	return jetstream.OpenReader(ctx, nc, s.Name)
}

// connected has do ask the servers.
func (s storeSettings) connected(do func(*nats.Conn) error) error {
	nc, err := jetstream.Dial(s.access())
	if err != nil {
		return err
	}
	defer nc.Close()
	return do(nc)
}
