package state

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner"
	"waza/runner/journal"
	"waza/runner/telemetry"
)

// RecordingFlags returns the flags of the commands that record runs: --fsync and --traces.
func RecordingFlags(category string) []cli.Flag {
	names := journal.SyncNames()
	return []cli.Flag{
		&cli.StringFlag{
			Name: "fsync", Category: category, Value: names[0], DefaultText: names[0],
			Usage: "sync the record to disk by `POLICY`: with group, a power failure can lose 20 ms of work, with always " +
				"none; never leaves syncing to the system",
		},
		&cli.StringFlag{
			Name: "traces", Category: category, DefaultText: "off",
			Usage: "send OpenTelemetry traces to the collector at `URL`, such as http://localhost:4318; env means the " +
				"address in OTEL_EXPORTER_OTLP_ENDPOINT",
		},
	}
}

// RecordOptions are the parts of a recording runner that depend on the command.
type RecordOptions struct {
	Hubs Hubs
	Log  *slog.Logger
	// Gate admits runs; nil admits all.
	Gate runner.Gate
	// Metrics counts runs for Prometheus.
	Metrics bool
}

// Recording is the open runner of a command that records runs. It owns the exporters of their
// traces and metrics.
type Recording struct {
	Opened
	traces  *telemetry.Traces  // nil without --traces
	metrics *telemetry.Metrics // nil without metrics
	left    bool
}

// Record opens the runner of a command that has [RecordingFlags].
func (o Opener) Record(c *cli.Context, with RecordOptions) (*Recording, error) {
	if err := flags.OneOf("fsync", c.String("fsync"), journal.SyncNames()...); err != nil {
		return nil, err
	}
	options := o.options(with.Hubs, with.Log)
	options.Gate = with.Gate
	var err error
	if options.Sync, err = journal.ParseSync(c.String("fsync")); err != nil {
		return nil, err
	}
	r := &Recording{Opened: Opened{stderr: o.Stderr}}
	if c.IsSet("traces") && !sdkDisabled() {
		r.traces, err = telemetry.NewTraces(telemetry.TraceOptions{
			Endpoint: c.String("traces"), Contents: captureContents(), Version: o.Version, Logger: with.Log,
		})
		if err != nil {
			return nil, exit.Usagef("give the URL of a collector, or env", "--traces: %v", err)
		}
	}
	if r.Runner, err = runner.New(options); err != nil {
		return nil, err
	}
	if r.traces != nil {
		r.traces.Watch(r.Runner)
	}
	if with.Metrics {
		r.metrics = telemetry.NewMetrics()
		if counts, ok := options.Fleet.(interface{ Register(prometheus.Registerer) }); ok {
			counts.Register(r.metrics.Registry())
		}
		r.metrics.Watch(r.Runner)
	}
	return r, nil
}

// Registry is where the daemon registers its own metrics; nil without metrics.
func (r *Recording) Registry() *prometheus.Registry {
	if r.metrics == nil {
		return nil
	}
	return r.metrics.Registry()
}

// Leave makes CloseExporters return without waiting.
func (r *Recording) Leave() { r.left = true }

// exportTime limits how long a command waits for a collector at its end.
const exportTime = 5 * time.Second

// CloseExporters sends pending traces and metrics.
func (r *Recording) CloseExporters() {
	ctx, cancel := context.WithTimeout(context.Background(), exportTime)
	defer cancel()
	if r.left {
		cancel()
	}
	if r.traces != nil {
		r.traces.Close(ctx)
	}
	if r.metrics != nil {
		r.metrics.Close(ctx)
	}
}

// sdkDisabled reports whether the environment disables OpenTelemetry.
func sdkDisabled() bool { return envTrue("OTEL_SDK_DISABLED") }

func captureContents() bool { return envTrue("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") }

func envTrue(name string) bool {
	yes, err := strconv.ParseBool(cmp.Or(os.Getenv(name), "false"))
	return err == nil && yes
}
