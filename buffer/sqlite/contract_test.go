package sqlite

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/storetest"
)

// engine is this package for the suite.
func engine(window int64, keys ...Key) storetest.Engine {
	return storetest.Engine{
		Open: func(t *testing.T, dir string) buffer.Store {
			return openStore(t, Config{Dir: dir, lazy: true, Window: window, Keys: keys})
		},
		Check:   func(t *testing.T, dir string) { wantSound(t, dir, keys...) },
		Abandon: func(t *testing.T, s buffer.Store) { abandon(t, s.(*Store)) },
	}
}

func TestContract_FromMemory(t *testing.T) { storetest.Run(t, engine(0)) }

// A window for some chunks only has all three: reads from memory, from the file, and evictions.
func TestContract_SmallWindow(t *testing.T) { storetest.Run(t, engine(2048)) }

func TestContract_Encrypted(t *testing.T) { storetest.Run(t, engine(2048, key("new"), key("old"))) }

func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// abandon gives up the folder's lock and the owner's, as the death of the process would, and nothing else.
func abandon(t testing.TB, s *Store) {
	t.Helper()
	for _, lock := range []*os.File{s.owners.own, s.dir.lock} {
		must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))
	}
}

func wantSound(t *testing.T, dir string, keys ...Key) {
	t.Helper()
	faults, err := Check(context.WithoutCancel(t.Context()), dir, keys...) // it has ended where this is a cleanup
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
