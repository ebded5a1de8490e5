package api

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// Metrics counts what happens to runs, by route. It is a buffer.Observer: what it counts is stored,
// so that the figures, the log and the client's end never disagree.
type Metrics struct {
	registry     *prometheus.Registry
	begun        *prometheus.CounterVec // route
	readers      *prometheus.CounterVec // by
	ended        *prometheus.CounterVec // route, outcome, detail
	attempts     *prometheus.CounterVec // route, class, action
	unknown      *prometheus.CounterVec // route
	tokens       *prometheus.CounterVec // route
	firstByte    *prometheus.HistogramVec
	firstContent *prometheus.HistogramVec
	recovered    prometheus.Counter
	reuses       *prometheus.CounterVec // how
	saved        prometheus.Counter
	dollars      prometheus.Counter
	prices       atomic.Pointer[map[string]provider.Price] // by route
}

// The outcomes of runs. A stream that was cut after its first token is in no success.
const (
	outcomePrimary      = "primary_ok"
	outcomeRetry        = "retry_recovered"
	outcomeFallback     = "fallback_recovered"
	outcomePolicy       = "completed_policy"
	outcomeUsageMissing = "completed_usage_missing"
	outcomeInterrupted  = "interrupted" // detail: the reason
	outcomeFailed       = "failed"      // detail: the class of the last attempt
	outcomeCancelled    = "cancelled"   // detail: the reason
)

// latencies are the bounds of the histograms, in seconds.
var latencies = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: latencies}, []string{"route"})
	}
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		begun:        counter("spool_runs_begun_total", "Runs that this process has begun.", "route"),
		readers:      counter("spool_readers_total", "Readers that came, the run's own caller included: by the provider's route, or to resume.", "by"),
		ended:        counter("spool_runs_ended_total", "Runs that ended, by how: only those with proof of the end are successes.", "route", "outcome", "detail"),
		attempts:     counter("spool_attempts_total", "Requests sent to providers, as the ledger has them.", "route", "class", "action"),
		unknown:      counter("spool_attempts_possibly_billed_total", "Attempts without an answer that may have been paid for.", "route"),
		tokens:       counter("spool_output_tokens_total", "Output tokens that providers reported.", "route"),
		firstByte:    histogram("spool_first_byte_seconds", "From a send to the head of its answer."),
		firstContent: histogram("spool_first_content_seconds", "From a run's creation to its first content."),
		recovered:    prometheus.NewCounter(prometheus.CounterOpts{Name: "spool_runs_recovered_total", Help: "Live runs of a dead process that were sealed at the start."}),
		reuses:       counter("spool_reuses_total", "Repeats that were served from the log instead of a purchase.", "how"),
		saved:        prometheus.NewCounter(prometheus.CounterOpts{Name: "spool_output_tokens_saved_total", Help: "Output tokens that were delivered by replay or attach instead of a new call."}),
	}
	m.dollars = prometheus.NewCounter(prometheus.CounterOpts{Name: "spool_dollars_saved_total", Help: "What those tokens, and the calls' input, would have cost, in US dollars at the routes' configured prices."})
	m.registry.MustRegister(m.begun, m.readers, m.ended, m.attempts, m.unknown, m.tokens, m.firstByte, m.firstContent, m.recovered, m.reuses, m.saved, m.dollars,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// gauge adds a figure that is asked for whenever the metrics are.
func gauge[N int | int64](m *Metrics, name, help string, value func() N) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
}

// Handler serves the metrics, with gauges of what is live.
func (m *Metrics) Handler(runs *buffer.Runs) http.Handler {
	gauge(m, "spool_live_runs", "Runs whose drain is under way in this process.", runs.Live)
	gauge(m, "spool_open_tails", "Tails that are open in this process.", runs.Tails)
	gauge(m, "spool_circuits_open", "Routes and models whose circuit is not closed.", runs.OpenCircuits)
	total := func(name, help string, value func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	total("spool_stored_chunks_total", "Chunks that this process has committed.", func() int64 { chunks, _ := runs.Stored(); return chunks })
	total("spool_stored_bytes_total", "Bytes of those chunks.", func() int64 { _, bytes := runs.Stored(); return bytes })
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Prices tells what the routes' tokens cost from now on.
func (m *Metrics) Prices(routes map[string]provider.Route) {
	prices := map[string]provider.Price{}
	for name, r := range routes {
		prices[name] = r.Price
	}
	m.prices.Store(&prices)
}

// Disk adds gauges of the folder: the bytes that its files take, and those that are free.
func (m *Metrics) Disk(measure func() (used, free int64)) {
	gauge(m, "spool_disk_used_bytes", "What the files of the data folder take.", func() int64 { used, _ := measure(); return used })
	gauge(m, "spool_disk_free_bytes", "What is free where the data folder is.", func() int64 { _, free := measure(); return free })
}

// Reusable adds a gauge of what compacting the log would give back.
func (m *Metrics) Reusable(measure func() int64) {
	gauge(m, "spool_disk_reusable_bytes", "Of the log's file, what was deleted and is free for the next answers.", measure)
}

// Retiring adds a gauge of the runs that keep a key of before in the configuration.
func (m *Metrics) Retiring(count func() int64) {
	gauge(m, "spool_encryption_retiring_runs", "Kept runs whose data key is wrapped by another key than the first of encryption.keys.", count)
}

// Gatherer gives the figures as they are when it is asked.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Recovered counts the runs that were sealed at the start.
func (m *Metrics) Recovered(n int) { m.recovered.Add(float64(n)) }

// RunBegun implements buffer.Observer.
func (m *Metrics) RunBegun(_ context.Context, r buffer.Run) { m.begun.WithLabelValues(r.Route).Inc() }

// Joined implements buffer.Observer.
func (m *Metrics) Joined(_ context.Context, _ ulid.ULID, caller bool) (left func()) {
	by := "resume"
	if caller {
		by = "provider_route"
	}
	m.readers.WithLabelValues(by).Inc()
	return func() {}
}

// AttemptEnded implements buffer.Observer.
func (m *Metrics) AttemptEnded(_ buffer.Run, a buffer.Attempt) {
	m.attempts.WithLabelValues(a.Route, string(a.Class), string(a.Action)).Inc()
	if a.Billed == policy.BilledUnknown {
		m.unknown.WithLabelValues(a.Route).Inc()
	}
	if a.FirstByte > 0 {
		m.firstByte.WithLabelValues(a.Route).Observe(a.FirstByte.Seconds())
	}
	if a.Usage != nil {
		m.tokens.WithLabelValues(a.Route).Add(float64(a.Usage.OutputTokens))
	}
}

// RunEnded implements buffer.Observer.
func (m *Metrics) RunEnded(r buffer.Run) {
	outcome, detail := outcomeOf(r)
	m.ended.WithLabelValues(r.Route, outcome, detail).Inc()
	if !r.Committed.IsZero() {
		m.firstContent.WithLabelValues(r.Route).Observe(r.Committed.Sub(r.Created).Seconds())
	}
	if r.Usage != nil {
		m.save(r, r.Attaches)
	}
}

// Reused implements buffer.Observer.
func (m *Metrics) Reused(r buffer.Run) {
	if r.State.Live() { // its tokens are known when it ends
		m.reuses.WithLabelValues("attach").Inc()
		return
	}
	m.reuses.WithLabelValues("replay").Inc()
	if r.Usage != nil {
		m.save(r, 1)
	}
}

// save counts what n repeats of a call would have bought.
func (m *Metrics) save(r buffer.Run, n int64) {
	m.saved.Add(float64(n * r.Usage.OutputTokens))
	if prices := m.prices.Load(); prices != nil {
		m.dollars.Add(float64(n) * (*prices)[r.Route].Of(*r.Usage))
	}
}

// outcomeOf says in one word how a run ended.
func outcomeOf(r buffer.Run) (outcome, detail string) {
	switch r.Outcome {
	case buffer.Interrupted:
		return outcomeInterrupted, string(r.Reason)
	case buffer.Cancelled:
		return outcomeCancelled, string(r.Reason)
	case buffer.Failed:
		return outcomeFailed, lastClass(r)
	}
	switch {
	case slices.Contains(r.Notes, "policy"):
		return outcomePolicy, ""
	case slices.Contains(r.Notes, "usage_missing"):
		return outcomeUsageMissing, ""
	case len(r.Attempts) > 0 && r.Attempts[len(r.Attempts)-1].Route != r.Route:
		return outcomeFallback, ""
	case len(r.Attempts) > 1:
		return outcomeRetry, ""
	}
	return outcomePrimary, ""
}

func lastClass(r buffer.Run) string {
	if len(r.Attempts) == 0 {
		return string(r.Reason)
	}
	return string(r.Attempts[len(r.Attempts)-1].Class)
}
