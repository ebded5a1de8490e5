package buffer

import (
	"sync"

	"github.com/oklog/ulid/v2"
)

// The phases of an idle run, for people who wait.
const (
	phaseSlot       = "waiting_for_slot"
	phaseConnecting = "connecting"
	phaseHeaders    = "waiting_for_headers"
	phaseContent    = "waiting_for_content"
	phaseRetrying   = "retrying"
	phaseFallback   = "falling_back"
)

// phase is what a drain is doing before its first content, and a bell for those who want to see it
// change.
type phase struct {
	mu      sync.Mutex
	name    string
	changed chan struct{} // closed by the next set, which makes another
}

func newPhase() *phase { return &phase{name: phaseSlot, changed: make(chan struct{})} }

// set begins a phase and rings.
func (p *phase) set(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name == name {
		return
	}
	p.name = name
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *phase) load() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name, p.changed
}

// Phase says, for people, what an idle run of this process is doing; empty for any other.
func (rs *Runs) Phase(id ulid.ULID) string {
	name, _ := rs.WatchPhase(id)
	return name
}

// WatchPhase is Phase, with a channel that is closed when another phase begins; nil where the run
// has no drain in this process.
func (rs *Runs) WatchPhase(id ulid.ULID) (name string, changed <-chan struct{}) {
	rs.mu.Lock()
	d := rs.live[id]
	rs.mu.Unlock()
	if d == nil {
		return "", nil
	}
	return d.phase.load()
}
