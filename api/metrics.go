package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spool-dev/spool/buffer"
)

// NewMetrics returns the handler of /metrics.
func NewMetrics(runs *buffer.Runs) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "spool_live_runs", Help: "Runs whose drain is under way in this process.",
		}, func() float64 { return float64(runs.Live()) }),
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
