package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram_QuantilesAreWithinAFewPercent(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var a, b histogram
	var all []float64
	for i := range 20_000 {
		us := int64(1) << random.IntN(28)
		us += random.Int64N(us)
		all = append(all, float64(us))
		if i%2 == 0 {
			a.add(time.Duration(us) * time.Microsecond)
		} else {
			b.add(time.Duration(us) * time.Microsecond)
		}
	}
	a.merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		got, want := a.quantile(q), all[min(int(q*float64(len(all))), len(all)-1)]
		if got < want*0.96-1 || got > want*1.04+1 {
			t.Errorf("q %v: got %v, want %v", q, got, want)
		}
	}
}

func TestHistogram_HoldsAnything(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("empty: got %v", got)
	}
	h.add(-time.Second) // clocks of two processes
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("negative: got %v", got)
	}
	for _, d := range []time.Duration{1<<63 - 1, 31 * time.Microsecond, 32 * time.Microsecond, 63 * time.Microsecond, 64 * time.Microsecond} {
		var h histogram
		h.add(d)
		if h.total != 1 || h.quantile(1) == 0 {
			t.Errorf("%v: got %v of %d", d, h.quantile(1), h.total)
		}
	}
}

func TestBucketOf_NeverGoesBack(t *testing.T) {
	last := 0
	for us := range uint64(1 << 20) {
		b := bucketOf(us)
		if b < last || b > last+1 {
			t.Fatalf("%d µs is in bucket %d after %d", us, b, last)
		}
		last = b
	}
}

func TestSpreadOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   spread
	}{
		{"none", nil, spread{}},
		{"one", []float64{3}, spread{3, 3, 3}},
		{"odd", []float64{9, 1, 2}, spread{1, 2, 9}},
		{"even", []float64{4, 1, 2, 9}, spread{1, 3, 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := spreadOf(tt.values); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
