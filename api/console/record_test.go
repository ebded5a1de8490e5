package console

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

func TestRecord_KeepsAnHour(t *testing.T) {
	metrics := prometheus.NewRegistry()
	chunks := prometheus.NewCounter(prometheus.CounterOpts{Name: "spool_stored_chunks_total"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "spool_runs_ended_total"}, []string{"route", "outcome"})
	content := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "spool_first_content_seconds", Buckets: []float64{0.1, 1, 10}}, []string{"route"})
	metrics.MustRegister(chunks, ended, content)
	r := NewRecord(metrics, zap.NewNop())
	begun := time.Unix(1_000_000, 0)
	for i := range recordSteps + 50 {
		r.sample(begun.Add(time.Duration(i) * recordStep))
		chunks.Add(30)
	}
	all := r.samples()
	if len(all) != recordSteps || all[len(all)-1].at.Sub(all[0].at) != time.Hour {
		t.Fatalf("%d samples over %s", len(all), all[len(all)-1].at.Sub(all[0].at))
	}
	for _, p := range rate(all, func(s sample) float64 { return s.chunks }) {
		if p.value != 3 {
			t.Fatalf("%v chunks a second, want 3", p.value)
		}
	}
	for _, route := range []string{"a", "b"} {
		ended.WithLabelValues(route, "failed").Inc()
		content.WithLabelValues(route).Observe(0.5)
	}
	r.sample(begun.Add(2 * time.Hour))
	all = r.samples()
	last := all[len(all)-1]
	if last.outcomes["failed"] != 2 {
		t.Errorf("%v failed, want those of both routes", last.outcomes)
	}
	if half, ok := quantile(last.since(all[0]), 0.5); !ok || half < 0.1 || half > 1 {
		t.Errorf("median %v %t, want one within the bucket", half, ok)
	}
	for _, p := range hourOf(all).Panels {
		for _, s := range p.Series {
			if strings.Contains(s.Line+s.Area, "NaN") || strings.Contains(s.Line+s.Area, "Inf") {
				t.Errorf("%s: a line of no numbers: %s", p.Title, s.Line)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, row := range []struct {
		name  string
		all   []bucket
		share float64
		want  float64
		ok    bool
	}{
		{"nothing", nil, 0.5, 0, false},
		{"none counted", []bucket{{1, 0}, {2, 0}}, 0.5, 0, false},
		{"the first bucket", []bucket{{1, 10}, {2, 10}}, 0.5, 0.5, true},
		{"the second", []bucket{{1, 0}, {3, 10}}, 0.5, 2, true},
		{"all", []bucket{{1, 5}, {2, 10}}, 1, 2, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, ok := quantile(row.all, row.share); got != row.want || ok != row.ok {
				t.Errorf("%v %t, want %v %t", got, ok, row.want, row.ok)
			}
		})
	}
}

func TestTopOf_IsRoundAndNotBelow(t *testing.T) {
	for _, v := range []float64{0.003, 0.1, 0.9, 1, 1.1, 2.4, 7, 10, 11, 99, 100, 12345, 1e12} {
		top := topOf(0, []point{{value: v, ok: true}})
		if top < v || top > 2.6*v || math.IsInf(top, 0) {
			t.Errorf("the top of %v is %v", v, top)
		}
	}
}
