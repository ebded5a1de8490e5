package jetstream

import (
	"math"
	"sync"
	"time"
)

// The wait for an answer, which doubles: with a fixed one a busy cluster gets each question twice.
const (
	// firstWait is the first one where nothing is known, or the servers are slow.
	firstWait = 500 * time.Millisecond
	// leastWait is the first one where they are quick. A leader that steps down drops what is under way, without
	// a word: the run stands still for as long.
	leastWait = 100 * time.Millisecond
	lastWait  = 8 * time.Second
	// paceWait is what each MiB of a question may take besides: of one that is under way a second makes it
	// slower still.
	paceWait = 500 * time.Millisecond
	// unled is the wait before the next question where nobody answers for a stream: it elects a leader.
	unled = 50 * time.Millisecond
)

// forgets is the time after which the slowest acknowledgement counts for half.
const forgets = 10 * time.Second

// patience knows how slow the servers have been of late.
type patience struct {
	mu      sync.Mutex // guards what follows
	slowest time.Duration
	at      time.Time // when it was that
}

// heard takes in how long an acknowledgement has taken.
func (p *patience) heard(took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slowest, p.at = max(min(took, firstWait), p.recent(now)), now // an outage's length says nothing about the time after it
}

// first is how long to wait for the first answer: twice the slowest of late.
func (p *patience) first(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		return firstWait
	}
	return min(max(2*p.recent(now), leastWait), firstWait)
}

// recent is for who holds the lock.
func (p *patience) recent(now time.Time) time.Duration {
	return time.Duration(float64(p.slowest) * math.Exp2(-float64(now.Sub(p.at))/float64(forgets)))
}

// longer is the next wait. After a refusal, or while there is no connection, it stays: else it would be seconds by
// the time that there is one again, and the first answer that is lost then would cost all of them.
func longer(wait time.Duration, err error) time.Duration {
	if silent(err) {
		return min(2*wait, lastWait)
	}
	return wait
}
