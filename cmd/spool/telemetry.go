package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.uber.org/zap"

	"github.com/spool-dev/spool/api/trace"
	"github.com/spool-dev/spool/buffer/provider"
)

type telemetrySettings struct {
	Endpoint  string            `koanf:"otlp_endpoint" fixed:"true" help:"Base URL of an OTLP collector that takes http/protobuf, like http://127.0.0.1:4318; /v1/traces is added."`
	Headers   map[string]string `koanf:"headers" fixed:"true" secret:"true" help:"Sent with each export, like authorization."`
	Sampling  *float64          `koanf:"sampling" fixed:"true" help:"The part of traces that is kept of those that begin here, from 0 to 1; a caller's own decision is kept. Absent: all, or what OTEL_TRACES_SAMPLER says."`
	Propagate bool              `koanf:"propagate" default:"false" fixed:"true" help:"With tracing on, a caller's traceparent, tracestate and baggage go on to the provider. Else they stay here."`
}

func (t telemetrySettings) validate() error {
	var all []error
	if _, err := provider.ParseBase(t.Endpoint); t.Endpoint != "" && err != nil {
		all = append(all, fmt.Errorf("telemetry.otlp_endpoint: %w", err))
	}
	if t.Sampling != nil && !(*t.Sampling >= 0 && *t.Sampling <= 1) {
		all = append(all, fmt.Errorf("telemetry.sampling: %v is not from 0 to 1", *t.Sampling))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if name == "" || strings.ContainsAny(name, ": \r\n") || strings.ContainsAny(t.Headers[name], "\r\n") {
			all = append(all, fmt.Errorf("telemetry.headers.%s: no HTTP header looks like this", name))
		}
	}
	return errors.Join(all...)
}

// flushTime bounds what a collector that is away may hold the end up.
const flushTime = 5 * time.Second

// The variables of OpenTelemetry's that say where traces go, which outrank the file, and whether.
var (
	otelEndpoints = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}
	otelHeaders   = []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}
)

// open returns the tracer; nil where nothing says where to export to, or that nothing is to be.
func (t telemetrySettings) open(log *zap.Logger) (*trace.Tracer, error) {
	elsewhere := anySet(otelEndpoints)
	off := strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none"
	if off || t.Endpoint == "" && !elsewhere {
		return nil, nil
	}
	// Their handler is a global, and writes to stderr what is not JSON.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans not exported", zap.Error(err)) }))
	c := trace.Config{Pass: t.Propagate, Version: version}
	if !elsewhere {
		u, err := provider.ParseBase(t.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("telemetry.otlp_endpoint: %w", err)
		}
		c.Endpoint = u
	}
	if !anySet(otelHeaders) {
		c.Headers = t.Headers
	}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		c.Ratio = t.Sampling
	}
	return trace.Open(context.Background(), c)
}

func anySet(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return os.Getenv(name) != "" })
}

// closeTracer hands over what is left. Spans that cannot be are lost, and the end is a clean one.
func closeTracer(t *trace.Tracer, log *zap.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("spans not exported", zap.Error(err))
	}
}
