package trace

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// Config says where spans go. OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_…, OTEL_BSP_…,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER) fill what is not set here.
type Config struct {
	Endpoint *url.URL          // of an OTLP collector (http/protobuf), without /v1/traces
	Headers  map[string]string // sent with each export
	Ratio    *float64          // of traces that begin here, from 0 to 1; a caller's decision is kept
	Pass     bool              // a caller's trace headers go on to the model's provider
	Version  string            // of the service
}

// exportTime bounds one export, its retries included: a collector that is away costs memory until then.
const exportTime = 10 * time.Second

// Open returns a tracer that exports in the background. A collector that cannot be reached, or is too
// slow, costs spans and nothing else: they wait in a bounded queue, beyond which they are dropped.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	var opts []otlptracehttp.Option
	if c.Endpoint != nil {
		opts = append(opts, otlptracehttp.WithEndpointURL(c.Endpoint.JoinPath("v1", "traces").String()))
	}
	if len(c.Headers) > 0 {
		opts = append(opts, otlptracehttp.WithHeaders(c.Headers))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("spool"), semconv.ServiceVersion(c.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	provider := []sdk.TracerProviderOption{
		sdk.WithBatcher(exporter, sdk.WithExportTimeout(exportTime)), sdk.WithResource(about),
	}
	if c.Ratio != nil {
		provider = append(provider, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(*c.Ratio))))
	}
	return New(sdk.NewTracerProvider(provider...), c.Pass), nil
}
