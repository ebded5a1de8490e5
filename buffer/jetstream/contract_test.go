package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/storetest"
	"github.com/spool-dev/spool/test/servers"
)

// engine is this package for the suite. Each folder is a log of its own in the one server.
func engine(srv *server.Server) storetest.Engine {
	return storetest.Engine{
		Fewer: 4,
		Open: func(t *testing.T, dir string) buffer.Store {
			t.Helper()
			name := logName(dir)
			if err := initLog(t, srv.ClientURL(), Layout{Name: name, Shards: 2, Replicas: 1}); err != nil {
				t.Fatal(err)
			}
			return openStore(t, srv.ClientURL(), Config{Name: name, Lease: time.Second, Reap: -1, UnsafeDurability: true})
		},
		Check:   func(t *testing.T, dir string) { wantSound(t, srv.ClientURL(), logName(dir)) },
		Abandon: func(t *testing.T, s buffer.Store) { abandon(s.(*Store)) },
	}
}

func TestContract(t *testing.T) { storetest.Run(t, engine(servers.Single(t))) }

func logName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

func initLog(t testing.TB, urls string, l Layout) error {
	t.Helper()
	nc := dial(t, urls)
	defer nc.Close()
	return Init(t.Context(), nc, l)
}

func openStore(t testing.TB, urls string, cfg Config) *Store {
	t.Helper()
	cfg.Conn = dial(t, urls)
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t testing.TB, urls string) *nats.Conn {
	t.Helper()
	nc, err := Dial(Access{URL: urls})
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// abandon lets the node's lease be over, as the death of its process would, and nothing else.
func abandon(s *Store) { s.lease.end() }

func wantSound(t testing.TB, urls, name string) {
	t.Helper()
	nc := dial(t, urls)
	defer nc.Close()
	faults, err := Check(context.WithoutCancel(t.Context()), nc, name) // it has ended where this is a cleanup
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
