package cutter

import (
	"math/rand/v2"
	"time"
)

// Cut is what becomes of one connection; the zero value lets it be. Its methods add to it.
type Cut struct {
	toxics []toxic
	reset  bool
}

// toxic is one of toxiproxy's, as its API takes it.
type toxic struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

// Whole cuts nothing: a plan.
func Whole(int) Cut { return Cut{} }

// First cuts the first connections, each in its way, and no later one: a plan.
func First(cuts ...Cut) func(n int) Cut {
	return func(n int) Cut {
		if n < len(cuts) {
			return cuts[n]
		}
		return Cut{}
	}
}

// Request closes the connection after n bytes of what its client sends.
func Request(n int64) Cut { return Cut{}.with("limit_data", "upstream", map[string]int64{"bytes": n}) }

// Answer closes the connection after n bytes of what its client gets, heads and all; below 0 never.
func Answer(n int64) Cut {
	if n < 0 {
		return Cut{}
	}
	return Cut{}.with("limit_data", "downstream", map[string]int64{"bytes": n})
}

// Body closes the connection after n bytes of the body of its first answer.
func Body(n int64) Cut { return Cut{}.with(bodyLimit, "downstream", map[string]int64{"bytes": n}) }

// Lines is Body, but for line ends: no cut comes between a line and its end, or the blank line after it.
func Lines(n int64) Cut {
	return Cut{}.with(bodyLimit, "downstream", map[string]int64{"bytes": n, "lines": 1})
}

// Anywhere cuts by chance, and somehow: most often within the first so many bytes of what the client
// gets, else in a head or in what it sends.
func Anywhere(random *rand.Rand, most int64) Cut {
	cut := Answer(random.Int64N(most))
	switch random.IntN(6) {
	case 0:
		cut = Request(random.Int64N(500))
	case 1:
		cut = Answer(random.Int64N(700))
	}
	return cut.Somehow(random)
}

// Reset makes a reset of the close. toxiproxy's reset_peer lets no byte through before it resets.
func (c Cut) Reset() Cut {
	c.reset = true
	return c
}

// Stalled keeps the connection open for so long after the last byte.
func (c Cut) Stalled(d time.Duration) Cut {
	return c.with("slow_close", "downstream", map[string]int64{"delay": d.Milliseconds()})
}

// Sliced hands over what the client gets in pieces of about size bytes.
func (c Cut) Sliced(size int64) Cut {
	return c.with("slicer", "downstream", map[string]int64{"average_size": size})
}

// Slow hands over what the client gets at so many KB a second.
func (c Cut) Slow(rate int64) Cut {
	return c.with("bandwidth", "downstream", map[string]int64{"rate": rate})
}

// Somehow makes one of the ways to cut of it, by chance.
func (c Cut) Somehow(random *rand.Rand) Cut {
	const (
		pause = 20 * time.Millisecond
		rate  = 1000 // KB a second: some milliseconds for an answer
	)
	switch random.IntN(6) {
	case 0:
		return c.Reset()
	case 1:
		return c.Stalled(pause)
	case 2:
		return c.Sliced(1 + random.Int64N(20))
	case 3:
		return c.Slow(rate)
	case 4:
		return c.Sliced(1 + random.Int64N(20)).Slow(rate).Stalled(pause).Reset()
	}
	return c
}

func (c Cut) with(kind, direction string, attributes map[string]int64) Cut {
	c.toxics = append(c.toxics[:len(c.toxics):len(c.toxics)], toxic{Name: kind, Type: kind, Stream: direction, Attributes: attributes})
	return c
}
