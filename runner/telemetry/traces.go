package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"waza/runner"
)

// FromEnvironment is the endpoint that means the setting of the environment.
const FromEnvironment = "env"

// TraceOptions configure [NewTraces]. With the zero value, the environment sets the collector.
type TraceOptions struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, such as
	// http://localhost:4318. Empty or [FromEnvironment] means the address in the variables
	// OTEL_EXPORTER_OTLP_*. The other settings in these variables always apply.
	Endpoint string
	// Contents enables the export of prompts, outputs, errors, and arguments and results of tool
	// calls. They are confidential by default.
	Contents bool
	// Version is the version of the program; empty means that it is not exported.
	Version string
	// Logger gets one warning if the collector does not accept traces; nil discards it.
	Logger *slog.Logger
}

// Traces sends a trace of each run it follows. A trace has a span for the run, with a span for
// each task, with a span for each trial. The span of a trial contains spans for tool calls and,
// if known, for model calls. It is safe for concurrent use.
type Traces struct {
	options   TraceOptions
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	followers *followers
}

// queueSize is the maximum number of spans waiting to be sent. After flushEvery spans, each
// follower waits until they are sent. No span is dropped as long as fewer than a few dozen runs
// are running, however fast they are.
const (
	queueSize  = 1 << 15
	flushEvery = 1 << 10
)

// NewTraces prepares to send traces. It sends nothing yet, so an error concerns only the options
// and the environment.
func NewTraces(o TraceOptions) (*Traces, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: 300 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: 5 * time.Second,
	})}
	if o.Endpoint != "" && o.Endpoint != FromEnvironment {
		endpoint, err := tracesURL(o.Endpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithEndpointURL(endpoint))
	}
	exporter, err := otlptracehttp.New(context.Background(), options...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", "waza")}
	if o.Version != "" {
		attributes = append(attributes, attribute.String("service.version", o.Version))
	}
	// The environment comes last, so OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take
	// precedence.
	what, err := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t := &Traces{options: o, followers: newFollowers()}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(what),
		sdktrace.WithBatcher(&quietExporter{SpanExporter: exporter, log: o.Logger}, sdktrace.WithMaxQueueSize(queueSize)),
	)
	t.tracer = t.provider.Tracer("waza")
	return t, nil
}

// tracesURL completes the URL of a collector like OTEL_EXPORTER_OTLP_ENDPOINT is completed.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("traces: endpoint must be the URL of a collector, such as http://localhost:4318, got %q", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1/traces")
	}
	return u.String(), nil
}

// Watch sends a trace of each run that the runner starts from now on.
func (t *Traces) Watch(r *runner.Runner) { t.followers.watch(r, t.follow) }

// follow sends a trace of the run. It does not block and never slows the run.
func (t *Traces) follow(run *runner.Run) {
	r := &tracedRun{traces: t, record: run.Record(), tasks: map[int]span{}}
	t.followers.follow(run, r.handle, func() {})
}

// Close stops watching, and waits until the started runs are over and their traces are sent. It
// drops the rest when ctx ends.
func (t *Traces) Close(ctx context.Context) {
	t.followers.wait(ctx)
	_ = t.provider.Shutdown(ctx) // failures were reported already
}

// flush waits until the ended spans are sent or dropped.
func (t *Traces) flush() { _ = t.provider.ForceFlush(t.followers.ctx) }

// quietExporter logs only the first failure to send traces, because there can be thousands of
// attempts.
type quietExporter struct {
	sdktrace.SpanExporter
	log      *slog.Logger
	reported atomic.Bool
}

func (e *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !errors.Is(err, context.Canceled) && e.reported.CompareAndSwap(false, true) {
		e.log.Warn("cannot send traces to the collector; further failures are not logged", "error", err)
	}
	return nil
}
