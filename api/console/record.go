package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
)

const (
	recordStep  = 10 * time.Second
	recordSteps = 361 // an hour, and the sample before it that its first difference needs
)

// Record keeps the last hour of the metrics in memory, one sample every ten seconds. It is safe for
// concurrent use.
type Record struct {
	from prometheus.Gatherer
	log  *zap.Logger

	mu   sync.Mutex
	ring []sample // oldest first
}

// NewRecord returns a Record of what from says. It is empty until Keep runs.
func NewRecord(from prometheus.Gatherer, log *zap.Logger) *Record {
	return &Record{from: from, log: log}
}

// Keep takes samples until ctx ends.
func (r *Record) Keep(ctx context.Context) {
	step := time.NewTicker(recordStep)
	defer step.Stop()
	for {
		r.sample(time.Now())
		select {
		case <-step.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Record) sample(now time.Time) {
	families, err := r.from.Gather()
	if err != nil {
		r.log.Warn("metrics not sampled", zap.Error(err))
		return
	}
	s := sampleOf(families)
	s.at = now
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) == recordSteps {
		r.ring = append(r.ring[:0], r.ring[1:]...)
	}
	r.ring = append(r.ring, s)
}

// samples are those of the last hour, oldest first.
func (r *Record) samples() []sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sample(nil), r.ring...)
}

// sample is what the metrics said at one moment. Totals count from the start of the process.
type sample struct {
	at time.Time

	live, tails, circuits float64
	diskUsed, diskFree    float64

	chunks, bytes          float64 // totals from here on
	savedTokens, savedCost float64
	outcomes               map[string]float64
	content                []bucket // of the first content's latency, by their bound
}

// bucket counts the latencies up to a bound, in seconds.
type bucket struct{ bound, count float64 }

func sampleOf(families []*dto.MetricFamily) sample {
	s := sample{outcomes: map[string]float64{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s.read(strings.TrimPrefix(f.GetName(), "spool_"), m)
		}
	}
	return s
}

// read takes one figure; those of routes are added up.
func (s *sample) read(name string, m *dto.Metric) {
	value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
	switch name {
	case "live_runs":
		s.live = value
	case "open_tails":
		s.tails = value
	case "circuits_open":
		s.circuits = value
	case "disk_used_bytes":
		s.diskUsed = value
	case "disk_free_bytes":
		s.diskFree = value
	case "stored_chunks_total":
		s.chunks = value
	case "stored_bytes_total":
		s.bytes = value
	case "output_tokens_saved_total":
		s.savedTokens = value
	case "dollars_saved_total":
		s.savedCost = value
	case "runs_ended_total":
		for _, l := range m.GetLabel() {
			if l.GetName() == "outcome" {
				s.outcomes[l.GetValue()] += value
			}
		}
	case "first_content_seconds":
		s.readBuckets(m.GetHistogram().GetBucket())
	}
}

func (s *sample) readBuckets(all []*dto.Bucket) {
	for i, b := range all {
		if i == len(s.content) {
			s.content = append(s.content, bucket{bound: b.GetUpperBound()})
		}
		s.content[i].count += float64(b.GetCumulativeCount())
	}
}

// since are the buckets of what came after an earlier sample.
func (s sample) since(before sample) []bucket {
	all := append([]bucket(nil), s.content...)
	for i := range all {
		if i < len(before.content) {
			all[i].count -= before.content[i].count
		}
	}
	return all
}

// quantile is the latency below which a share of the counted lie, as far as buckets can tell; ok is
// false where none was counted.
func quantile(all []bucket, share float64) (seconds float64, ok bool) {
	if len(all) == 0 || all[len(all)-1].count == 0 {
		return 0, false
	}
	rank, low, below := share*all[len(all)-1].count, 0.0, 0.0
	for _, b := range all {
		if b.count >= rank {
			return low + (b.bound-low)*(rank-below)/max(b.count-below, 1), true
		}
		low, below = b.bound, b.count
	}
	return low, true
}
