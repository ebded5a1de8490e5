package jetstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/test/servers"
)

// patient is a lease that no busy machine lets run out.
const patient = time.Minute

// nodes opens n nodes of a log with three replicas.
func nodes(c *servers.Cluster, n int, lease time.Duration) (all []*Store) {
	c.Helper()
	if err := initLog(c.TB, c.URLs(), Layout{Shards: 3, Flushes: true}); err != nil {
		c.Fatal(err)
	}
	for range n {
		s := openStore(c.TB, c.URLs(), Config{Lease: lease})
		c.Cleanup(func() { _ = s.Close() }) // it never fails
		all = append(all, s)
	}
	return all
}

// begun is a live run of s.
func begun(t testing.TB, s *Store, key string) (buffer.Log, buffer.Run) {
	t.Helper()
	log, r, err := s.Create(t.Context(), buffer.Run{ID: ulid.Make(), Caller: "agent", Key: key, State: buffer.Idle, TTL: time.Hour})
	if err == nil {
		err = log.Attempt(t.Context(), buffer.Attempt{N: 1, Sent: r.Created})
	}
	if err != nil {
		t.Fatal(err)
	}
	return log, r
}

func chunk(pos int) []byte { return fmt.Appendf(nil, "data: chunk %d\n\n", pos) }

// wantWhole checks that s reads the run dense from its beginning, and that it holds at least the first n
// chunks. It returns the run.
func wantWhole(t testing.TB, s *Store, id ulid.ULID, n int) buffer.Run {
	t.Helper()
	r, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Head < int64(n) {
		t.Fatalf("run has %d chunks, %d were acknowledged", r.Head, n)
	}
	for next := int64(0); next < r.Head; {
		page, err := s.Read(t.Context(), id, next, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Chunks {
			if c.Pos != next || string(c.Data) != string(chunk(int(next))) {
				t.Fatalf("position %d holds %q at %d", next, c.Data, c.Pos)
			}
			next++
		}
	}
	return r
}

// tail reads the run on s as every reader does, until it ends, and returns it.
func tail(t testing.TB, s *Store, id ulid.ULID, each func(next int64)) (buffer.Run, error) {
	for next := int64(0); ; {
		changed, stop := s.Watch(id)
		page, err := s.Read(t.Context(), id, next, 1<<20)
		if err != nil {
			stop()
			return page.Run, err
		}
		for _, c := range page.Chunks {
			if c.Pos != next || string(c.Data) != string(chunk(int(next))) {
				stop()
				return page.Run, fmt.Errorf("position %d holds %q at %d", next, c.Data, c.Pos)
			}
			next++
		}
		each(next)
		if page.Run.State.Ended() && next == page.Run.Head {
			stop()
			return page.Run, nil
		}
		if len(page.Chunks) == 0 {
			<-changed
		}
		stop()
	}
}

// Every node serves every run, and of all claims in the cluster one wins.
func TestCluster_AnyNodeAnyRun(t *testing.T) {
	c := servers.Start(t)
	nodes := nodes(c, 3, patient)
	t.Run("a key is claimed once", func(t *testing.T) {
		var claims sync.WaitGroup
		var mu sync.Mutex
		won, told := map[ulid.ULID]int{}, map[ulid.ULID]int{}
		for i := range 24 {
			claims.Go(func() {
				_, r, err := nodes[i%3].Create(t.Context(), buffer.Run{ID: ulid.Make(), Caller: "agent", Key: "one", State: buffer.Idle})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won[r.ID]++
				case errors.Is(err, buffer.ErrExists):
					told[r.ID]++
				default:
					t.Error(err)
				}
			})
		}
		claims.Wait()
		if len(won) != 1 || len(told) != 1 {
			t.Fatalf("%d won; the others were told of %d", len(won), len(told))
		}
		for id := range won {
			if told[id] != 23 {
				t.Fatalf("the winner is %s, the others were told of %v", id, told)
			}
		}
	})
	t.Run("a run is read elsewhere as it is written", func(t *testing.T) {
		log, r := begun(t, nodes[0], "two")
		var tails sync.WaitGroup
		for _, s := range nodes {
			tails.Go(func() {
				if got, err := tail(t, s, r.ID, func(int64) {}); err != nil || got.Head != 50 || got.State != buffer.Completed {
					t.Errorf("run is %s at %d; error %v", got.State, got.Head, err)
				}
			})
		}
		for i := range 50 {
			state := buffer.Streaming
			if i == 49 {
				state = buffer.Completed
			}
			if err := log.Append(t.Context(), [][]byte{chunk(i)}, state, buffer.Closing{}); err != nil {
				t.Fatal(err)
			}
			if _, err := nodes[1+i%2].Read(t.Context(), r.ID, int64(i+1), 1); err != nil {
				t.Fatalf("what was acknowledged is not there elsewhere: %v", err)
			}
		}
		tails.Wait()
	})
	t.Run("a run is sealed elsewhere", func(t *testing.T) {
		log, r := begun(t, nodes[0], "three")
		if err := log.Append(t.Context(), [][]byte{chunk(0)}, buffer.Streaming, buffer.Closing{}); err != nil {
			t.Fatal(err)
		}
		sealed, err := nodes[2].Seal(t.Context(), r.ID, buffer.Cancelled, buffer.CancelAsked)
		if err != nil || sealed.State != buffer.Cancelled || sealed.Head != 1 {
			t.Fatalf("run is %s at %d; error %v", sealed.State, sealed.Head, err)
		}
		<-log.Sealed() // without asking
		if err := log.Append(t.Context(), [][]byte{chunk(1)}, buffer.Streaming, buffer.Closing{}); !errors.Is(err, buffer.ErrSealed) {
			t.Fatalf("appended after the seal: %v", err)
		}
		wantWhole(t, nodes[1], r.ID, 1)
	})
	wantSound(t, c.URLs(), DefaultName)
}

// An owner that dies is replaced by the others: its runs are sealed with all that was acknowledged, the
// readers elsewhere are told, and should it have been paused only, nothing of it is taken any more.
func TestCluster_OwnerDies(t *testing.T) {
	c := servers.Start(t)
	nodes := nodes(c, 2, 0)
	log, r := begun(t, nodes[0], "")
	idle, i := begun(t, nodes[0], "")
	kept, other := begun(t, nodes[1], "")
	acked := 0
	for ; acked < 20; acked++ {
		if err := log.Append(t.Context(), [][]byte{chunk(acked)}, buffer.Streaming, buffer.Closing{}); err != nil {
			t.Fatal(err)
		}
	}
	abandon(nodes[0])
	got, err := tail(t, nodes[1], r.ID, func(int64) {})
	if err != nil || got.State != buffer.Interrupted || got.Reason != buffer.OwnerLost || got.Head != int64(acked) {
		t.Fatalf("run is %s %s at %d; error %v", got.State, got.Reason, got.Head, err)
	}
	if err := log.Append(t.Context(), [][]byte{chunk(acked)}, buffer.Streaming, buffer.Closing{}); !errors.Is(err, buffer.ErrSealed) {
		t.Fatalf("appended after the seal: %v", err)
	}
	if got, err := tail(t, nodes[1], i.ID, func(int64) {}); err != nil || got.State != buffer.Failed {
		t.Fatalf("the run without content is %s; error %v", got.State, err)
	}
	if err := idle.Append(t.Context(), nil, buffer.Failed, buffer.Closing{}); !errors.Is(err, buffer.ErrSealed) {
		t.Fatalf("appended after the seal: %v", err)
	}
	if err := kept.Append(t.Context(), [][]byte{chunk(0)}, buffer.Completed, buffer.Closing{}); err != nil {
		t.Fatalf("the living owner's run: %v", err)
	}
	wantWhole(t, nodes[1], r.ID, acked)
	wantWhole(t, nodes[1], other.ID, 1)
	wantSound(t, c.URLs(), DefaultName)
}

// A server that dies, whichever it is, and comes back loses nothing that was acknowledged, and nothing
// is stored twice.
func TestCluster_ServerDies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := servers.Start(t)
	nodes := nodes(c, 2, patient)
	const runs, chunks = 4, 60
	type written struct {
		id    ulid.ULID
		acked int
	}
	results := make([]written, runs)
	begin := make(chan struct{}, runs*chunks)
	var writers sync.WaitGroup
	for i := range runs {
		log, r := begun(t, nodes[i%2], "")
		results[i].id = r.ID
		writers.Go(func() {
			for n := range chunks {
				state := buffer.Streaming
				if n == chunks-1 {
					state = buffer.Completed
				}
				if err := log.Append(t.Context(), [][]byte{chunk(n)}, state, buffer.Closing{}); err != nil {
					t.Errorf("run %s at %d: %v", r.ID, n, err)
					return
				}
				results[i].acked++
				begin <- struct{}{}
			}
		})
	}
	for range runs * chunks / 4 {
		<-begin
	}
	c.Restart(rnd.IntN(3))
	writers.Wait()
	for i, w := range results {
		if w.acked != chunks {
			t.Fatalf("run %d took %d chunks of %d", i, w.acked, chunks)
		}
		if r := wantWhole(t, nodes[(i+1)%2], w.id, chunks); r.State != buffer.Completed || r.Head != chunks {
			t.Errorf("run is %s %s at %d", r.State, r.Reason, r.Head)
		}
	}
	wantSound(t, c.URLs(), DefaultName)
}
