package buffer

import (
	"context"
	"sync"
	"time"
)

// storagePatience is how long a log may take for a write before it counts as one that refuses. What it
// has begun is waited for all the same.
const storagePatience = 5 * time.Second

// writes knows how the log takes what the runs give it.
type writes struct {
	mu     sync.Mutex
	failed bool      // the last one was refused
	asked  int       // writes that are under way
	since  time.Time // when one of them began with none before it, or the last was answered
}

// begin counts a write until done is called.
func (w *writes) begin() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked++; w.asked == 1 {
		w.since = time.Now()
	}
	return w.end
}

func (w *writes) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked--
	w.since = time.Now()
}

func (w *writes) refused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = true
}

func (w *writes) taken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = false
}

// stalled reports whether the log answers nobody.
func (w *writes) stalled() bool { return w.silent(storagePatience) }

// silent reports whether the log has answered nobody for so long.
func (w *writes) silent(patience time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked > 0 && time.Since(w.since) > patience
}

func (w *writes) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Writable reports whether the log has taken the last write, and in time.
func (rs *Runs) Writable() bool { return !rs.writes.refuses() && !rs.writes.stalled() }

// Hung reports whether the log has had something to write for so long, and has answered nobody.
func (rs *Runs) Hung(patience time.Duration) bool { return rs.writes.silent(patience) }

// probe asks a log that has refused a write whether it takes one now: there may be no run to find out by.
func (rs *Runs) probe(ctx context.Context) {
	if !rs.writes.refuses() {
		return
	}
	defer rs.writes.begin()()
	if err := rs.store.Probe(ctx); err == nil {
		rs.writes.taken()
		rs.log.Info("log can be written again")
	}
}
