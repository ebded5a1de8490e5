package buffer

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/spool-dev/spool/buffer/policy"
)

const (
	circuitWindow   = 30 * time.Second // over which outcomes are counted
	circuitRest     = 15 * time.Second // how long an open circuit stays so before a probe
	circuitFailures = 5                // in a row, that open it
	circuitSample   = 20               // outcomes, from which a share of failures opens it
	circuitShare    = 0.5
)

// circuits knows which routes do not work at present, by route and model. A stream's outcome is told
// when it has ended.
type circuits struct {
	mu sync.Mutex
	by map[[2]string]*gobreaker.TwoStepCircuitBreaker[any]
}

func newCircuits() *circuits {
	return &circuits{by: map[[2]string]*gobreaker.TwoStepCircuitBreaker[any]{}}
}

var (
	errRouteFailed = errors.New("the route failed")
	errNoOutcome   = errors.New("neither success nor failure of the route")
)

// maxCircuits bounds how many models of callers' invention are remembered.
const maxCircuits = 4096

func (c *circuits) of(route, model string) *gobreaker.TwoStepCircuitBreaker[any] {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{route, model}
	b := c.by[key]
	if b == nil {
		if len(c.by) >= maxCircuits {
			c.makeRoom()
		}
		b = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
			MaxRequests: 1, Interval: circuitWindow, Timeout: circuitRest, ReadyToTrip: tripped,
			IsExcluded: func(err error) bool { return errors.Is(err, errNoOutcome) },
		})
		c.by[key] = b
	}
	return b
}

// makeRoom forgets a part of what is known, whatever it says: a route that does not work is found out
// again within a few attempts. The lock is held.
func (c *circuits) makeRoom() {
	for key := range c.by {
		if delete(c.by, key); len(c.by) <= maxCircuits/2 {
			return
		}
	}
}

// OpenCircuits is how many routes and models are not thought to work at present.
func (rs *Runs) OpenCircuits() int {
	c := rs.circuits
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, b := range c.by {
		if b.State() != gobreaker.StateClosed {
			n++
		}
	}
	return n
}

func tripped(n gobreaker.Counts) bool {
	return n.ConsecutiveFailures >= circuitFailures ||
		n.Requests >= circuitSample && float64(n.TotalFailures) >= circuitShare*float64(n.Requests)
}

// allow asks whether an attempt may be made; then done must be told its outcome, once.
func (c *circuits) allow(route, model string) (done func(error), ok bool) {
	done, err := c.of(route, model).Allow()
	return done, err == nil
}

// closed reports whether the route works as far as is known.
func (c *circuits) closed(route, model string) bool {
	return c.of(route, model).State() == gobreaker.StateClosed
}

// healthy reports whether an attempt on the route would be let through now.
func (c *circuits) healthy(route, model string) bool {
	return c.of(route, model).State() != gobreaker.StateOpen
}

// outcome is what an attempt says about its route.
func outcome(v policy.Verdict) error {
	switch {
	case v.CountsAgainstRoute():
		return errRouteFailed
	case v.Proven, v.Class == policy.Request, v.Class == policy.Policy: // it answered
		return nil
	}
	return errNoOutcome
}
