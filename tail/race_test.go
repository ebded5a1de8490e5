package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

func TestCursor_AppendRacesWait(t *testing.T) {
	const runs, races = 40, 250 // of each run: 10,000 in all
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, func(t *testing.T, f fixture) {
		begun := time.Now()
		var racing sync.WaitGroup
		for i := range runs {
			racing.Go(func() {
				log, run, err := f.store.Create(t.Context(), buffer.Run{ID: ulid.Make(), State: buffer.Idle})
				if err == nil {
					err = race(t.Context(), f.store, log, run.ID, races, rand.New(rand.NewPCG(seed, uint64(i))))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		racing.Wait()
		if passed := time.Since(begun); passed >= time.Second {
			t.Errorf("%s went by: a bell was lost", passed)
		}
	})
}

// race has one chunk after the other appended while a cursor looks for it.
func race(ctx context.Context, store *sqlite.Store, log buffer.Log, id ulid.ULID, races int, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := log.Attempt(ctx, buffer.Attempt{N: 1, Sent: time.Now()}); err != nil {
		return err
	}
	c := New(store, id, 0)
	for i := range races {
		before := random.IntN(4)
		appended := make(chan error, 1)
		go func() {
			for range before {
				runtime.Gosched()
			}
			appended <- log.Append(ctx, [][]byte{[]byte(text(i))}, buffer.Streaming, buffer.Closing{})
		}()
		page, err := c.Next(ctx)
		if err == nil && (len(page.Chunks) != 1 || string(page.Chunks[0].Data) != text(i)) {
			err = fmt.Errorf("%d chunks", len(page.Chunks))
		}
		if err := errors.Join(err, <-appended); err != nil {
			return fmt.Errorf("race %d: %w", i, err)
		}
	}
	return nil
}

// meddler does something after a read and before the cursor can wait for the bell.
type meddler struct {
	Log
	after func()
}

func (m *meddler) Read(ctx context.Context, id ulid.ULID, from int64, max int) (buffer.Page, error) {
	page, err := m.Log.Read(ctx, id, from, max)
	if m.after != nil {
		after := m.after
		m.after = nil
		after()
	}
	return page, err
}

func TestCursor_BellBetweenReadAndWaitIsHeard(t *testing.T) {
	for name, meddle := range map[string]func(f fixture){
		"a chunk":              func(f fixture) { f.append(buffer.Streaming, "a") },
		"the end with a chunk": func(f fixture) { f.append(buffer.Completed, "a") },
		"two commits":          func(f fixture) { f.append(buffer.Streaming, "a"); f.append(buffer.Completed) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f fixture) {
				begun := time.Now()
				f.wantNext(New(&meddler{f.store, func() { meddle(f) }}, f.id, 0), "a")
				if passed := time.Since(begun); passed >= time.Second {
					t.Errorf("%s went by: the bell was lost", passed)
				}
			})
		})
	}
	t.Run("the end alone", func(t *testing.T) {
		bubble(t, func(t *testing.T, f fixture) {
			f.append(buffer.Streaming, "a")
			c := New(&meddler{f.store, func() { f.append(buffer.Interrupted) }}, f.id, 1)
			f.wantEnd(c, buffer.Interrupted)
		})
	})
}

func TestCursor_ManyFromAnywhereSeeTheSame(t *testing.T) {
	const cursors, chunks = 100, 300
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	bubble(t, func(t *testing.T, f fixture) {
		var whole []byte
		ends := []int{0}
		var all []string
		for i := range chunks {
			all = append(all, text(i)+string(bytes.Repeat([]byte("x"), random.IntN(4<<10))))
			whole = append(whole, all[i]...)
			ends = append(ends, len(whole))
		}
		f.append(buffer.Streaming, all[:chunks/2]...)
		var readers sync.WaitGroup
		for range cursors {
			from, late := random.IntN(chunks/2+1), time.Duration(random.IntN(1000))*time.Millisecond
			readers.Go(func() {
				time.Sleep(late)
				var got []byte
				c := New(f.store, f.id, int64(from))
				for {
					page, err := c.Next(t.Context())
					for _, chunk := range page.Chunks {
						got = append(got, chunk.Data...)
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Errorf("from %d: %v", from, err)
						return
					}
				}
				if !bytes.Equal(got, whole[ends[from]:]) {
					t.Errorf("from %d: %d bytes, want %d", from, len(got), len(whole)-ends[from])
				}
			})
		}
		for i := chunks / 2; i < chunks; i++ {
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
			f.append(buffer.Streaming, all[i])
		}
		f.append(buffer.Completed)
		readers.Wait()
	})
}
