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

// FromEnvironment is the endpoint that stands for what the environment says.
const FromEnvironment = "env"

// TraceOptions say where traces go. The zero value sends them where the
// environment says.
type TraceOptions struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, such as
	// http://localhost:4318. Empty or [FromEnvironment] means what the variables
	// OTEL_EXPORTER_OTLP_* say, which hold for all else in any case.
	Endpoint string
	// Contents exports prompts, outputs, errors, and arguments and results of tool
	// calls, too. They are none of a collector's business by default.
	Contents bool
	// Version of the program; empty means that it is not told.
	Version string
	// Logger is told, once, when the collector takes no traces; nil discards it.
	Logger *slog.Logger
}

// Traces sends a trace of each run it follows: a span for the run, in it one for
// each task, in it one for each trial, in it one for each tool call and, where it
// is known, for the calls of models. It is safe for concurrent use.
type Traces struct {
	options   TraceOptions
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	followers *followers
}

// queueSize is how many spans may wait to be sent; flushEvery is after how many
// each follower waits until they are. So none is dropped as long as fewer than a
// few dozen runs go on at once, however fast they are.
const (
	queueSize  = 1 << 15
	flushEvery = 1 << 10
)

// NewTraces prepares to send traces. Nothing is sent yet, so the error is only
// about the options and the environment.
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
	// The environment comes last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
	what, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
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

// tracesURL completes the URL of a collector as OTEL_EXPORTER_OTLP_ENDPOINT is.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("traces: %q is no URL of a collector, such as http://localhost:4318", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1/traces")
	}
	return u.String(), nil
}

// Watch sends a trace of each run that the runner starts from now on.
func (t *Traces) Watch(r *runner.Runner) { t.followers.watch(r, t.follow) }

// follow sends a trace of the run. It does not block, nor does anything of it ever
// slow the run.
func (t *Traces) follow(run *runner.Run) {
	r := &tracedRun{traces: t, record: run.Record(), tasks: map[int]span{}}
	t.followers.follow(run, r.take, func() {})
}

// Close stops watching, and waits until the runs that have started are over and their
// traces are sent. It drops what is left when ctx ends.
func (t *Traces) Close(ctx context.Context) {
	t.followers.wait(ctx)
	_ = t.provider.Shutdown(ctx) // what could not be sent was told already
}

// flush waits until the spans that have ended are sent, or given up.
func (t *Traces) flush() { _ = t.provider.ForceFlush(t.followers.ctx) }

// quietExporter tells once that the collector takes no traces: there may be
// thousands of attempts.
type quietExporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	told atomic.Bool
}

func (e *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !errors.Is(err, context.Canceled) && e.told.CompareAndSwap(false, true) {
		e.log.Warn("traces do not reach the collector; this is told once", "error", err)
	}
	return nil
}
