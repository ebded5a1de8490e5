package buffer

import (
	"sync"
	"time"
)

const (
	// storageRest is how long a log that has refused a write is not asked for another by those who can
	// go elsewhere.
	storageRest = 10 * time.Second
	// storagePatience is how long a log may take for a write before it counts as one that refuses. What it
	// has begun is waited for all the same.
	storagePatience = 5 * time.Second
)

// writes knows how the log takes what the runs give it.
type writes struct {
	mu     sync.Mutex
	failed time.Time // the last refusal; zero where a write was taken since
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
	w.failed = time.Now()
}

func (w *writes) taken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = time.Time{}
}

// stalled reports whether the log answers nobody.
func (w *writes) stalled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked > 0 && time.Since(w.since) > storagePatience
}

func (w *writes) resting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.failed) <= storageRest
}

// Writable reports whether the log has taken every write of late, and in time.
func (rs *Runs) Writable() bool { return !rs.writes.resting() && !rs.writes.stalled() }
