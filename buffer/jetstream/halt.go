package jetstream

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
)

// pause is how long an owner appends nothing to a run that somebody else wants to change: whoever reads a
// run before he writes to it would come too late each time, against one who only writes.
const pause = 250 * time.Millisecond

// halts knows which of this node's runs pause. A lost halt costs the other a try, and nothing else:
// what keeps the log whole is the condition of each message.
type halts struct {
	mu    sync.Mutex
	until map[ulid.ULID]time.Time
}

func (s *Store) haltSubject() string { return s.layout.Name + ".halt." }

// heedHalts has this node listen for what the others want to change.
func (s *Store) heedHalts() error {
	_, err := s.nc.Subscribe(s.haltSubject()+"*", func(m *nats.Msg) { // it ends with the connection
		id, err := ulid.ParseStrict(strings.TrimPrefix(m.Subject, s.haltSubject()))
		if err != nil {
			return // nobody's run
		}
		if e, known := s.index.get(id); known && e.owner == s.owner && e.run.State.Live() {
			s.halts.add(id, time.Now())
		}
	})
	return err
}

func (h *halts) add(id ulid.ULID, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.until, func(_ ulid.ULID, until time.Time) bool { return until.Before(now) })
	h.until[id] = now.Add(pause)
}

// halt asks the run's owner to pause.
func (s *Store) halt(id ulid.ULID) {
	_ = s.nc.Publish(s.haltSubject()+id.String(), nil) // without it the try may fail, and is made again
}

// heed lets the run's pause pass.
func (s *Store) heed(ctx context.Context, id ulid.ULID) error {
	s.halts.mu.Lock()
	until, halted := s.halts.until[id]
	s.halts.mu.Unlock()
	if !halted {
		return nil
	}
	return s.wait(ctx, time.Until(until))
}
