package main

import (
	"math/bits"
	"slices"
	"time"
)

// A histogram counts durations in buckets of the same relative width: 32 to each power of two of
// microseconds, so a quantile is off by 3 % at most.
const (
	perOctave = 32
	octaves   = 26 // up to a quarter of an hour; what takes longer is in the last bucket
	buckets   = octaves * perOctave
)

// histogram is for one goroutine. The zero value is empty.
type histogram struct {
	counts [buckets]uint64
	total  uint64
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(uint64(max(0, d.Microseconds())))]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile is the duration in microseconds that the share q of all is not above; 0 where there are none.
func (h *histogram) quantile(q float64) float64 {
	rank := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen > rank || n > 0 && seen == h.total {
			return middle(i)
		}
	}
	return 0
}

// bucketOf gives the first buckets a width of one microsecond; above, each power of two has 32.
func bucketOf(us uint64) int {
	if us < perOctave {
		return int(us)
	}
	shift := bits.Len64(us) - bits.Len64(perOctave) // us>>shift is 32 to 63
	return min((shift+1)*perOctave+int(us>>shift)-perOctave, buckets-1)
}

func middle(bucket int) float64 {
	if bucket < perOctave {
		return float64(bucket)
	}
	shift := bucket/perOctave - 1
	low := uint64(perOctave+bucket%perOctave) << shift
	return float64(low) + float64(uint64(1)<<shift-1)/2
}

// spread is what several rounds gave.
type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// spreadOf sums values up; of none it is zero.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	median := v[mid]
	if len(v)%2 == 0 {
		median = (v[mid-1] + v[mid]) / 2
	}
	return spread{v[0], median, v[len(v)-1]}
}
