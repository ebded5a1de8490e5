package buffer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// Where the log refuses the end of an answer and memory has no room for it, its readers are told at once that it
// is cut, and not only when the log can be written again.
func TestStorage_ReadersAreToldWhereMemoryIsFull(t *testing.T) {
	bubble(t, func(r *rig) {
		r.fake.Script("primary", whole("a ", "b "))
		free := r.runs.FillRests()
		defer free()
		at := sqlite.AtFinish
		r.broken.Store(&at)
		id := r.start(r.call())
		r.wantState(r.followed(id, time.Minute), buffer.Interrupted, buffer.Storage)
		if run := r.get(id); run.State.Ended() {
			r.Errorf("the log, which refuses everything, says that the run is %s", run.State)
		}
		r.broken.Store(nil)
		r.wantState(r.ended(id), buffer.Interrupted, buffer.Storage)
	})
}

// followed follows a run to its end, as its readers do, and returns it as they see it then.
func (r *rig) followed(id ulid.ULID, patience time.Duration) buffer.Run {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	log := r.runs.Following(r.store)
	for from := int64(0); ; {
		changed, stop := log.Watch(id)
		page, err := log.Read(ctx, id, from, 1<<20)
		if err != nil {
			stop()
			r.Fatal(err)
		}
		from = page.Next(from)
		if page.Run.State.Ended() && len(page.Chunks) == 0 {
			stop()
			return page.Run
		}
		if len(page.Chunks) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
				stop()
				r.Fatalf("its readers are told nothing: the run is %s", page.Run.State)
			}
		}
		stop()
	}
}

// A log that has refused a write counts as one that refuses until it has taken one, also where there is no run to
// find out by; then it counts as good within a second.
func TestStorage_ReadinessIsWhatTheLogLastSaid(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go r.runs.Sweep(ctx)
		at := sqlite.AtCommit
		r.broken.Store(&at)
		if _, _, err := r.runs.Start(r.Context(), r.call()); !errors.Is(err, buffer.ErrStorage) {
			r.Errorf("start: %v", err)
		}
		for range 60 {
			if r.runs.Writable() {
				r.Fatal("a log that refuses everything counts as good")
			}
			time.Sleep(time.Second)
		}
		r.broken.Store(nil)
		time.Sleep(2 * time.Second)
		if !r.runs.Writable() {
			r.Error("a log that takes everything counts as one that refuses")
		}
	})
}
