package main

import (
	"cmp"
	"context"
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

// Flags of the commands that record runs, and their runners and watchers.

func fsyncFlag(category string) cli.Flag {
	names := journal.SyncNames()
	return &cli.StringFlag{
		Name: "fsync", Category: category, Value: names[0], DefaultText: names[0],
		Usage: "sync the record to disk by `POLICY`: with group, a power failure can lose 20 ms of work, with always " +
			"none; never leaves syncing to the system",
	}
}

func tracesFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "traces", Category: category, DefaultText: "off",
		Usage: "send OpenTelemetry traces to the collector at `URL`, such as http://localhost:4318; env means the " +
			"address in OTEL_EXPORTER_OTLP_ENDPOINT",
	}
}

// newRecordingRunner makes the runner of a command that has these flags, and the watchers of its
// runs.
func newRecordingRunner(c *cli.Context, o runner.Options) (*runner.Runner, *watchers, error) {
	if err := flags.OneOf("fsync", c.String("fsync"), journal.SyncNames()...); err != nil {
		return nil, nil, err
	}
	var err error
	if o.Sync, err = journal.ParseSync(c.String("fsync")); err != nil {
		return nil, nil, err
	}
	w := &watchers{}
	if c.IsSet("traces") && !sdkDisabled() {
		w.traces, err = telemetry.NewTraces(telemetry.TraceOptions{
			Endpoint: c.String("traces"), Contents: captureContents(), Version: buildVersion().Version, Logger: o.Logger,
		})
		if err != nil {
			return nil, nil, exit.Usagef("give the URL of a collector, or env", "--traces: %v", err)
		}
	}
	if c.IsSet("metrics") || c.Command.Name == "serve" {
		w.metrics = telemetry.NewMetrics()
	}
	rn, err := runner.New(o)
	if err != nil {
		return nil, nil, err
	}
	if w.traces != nil {
		w.traces.Watch(rn)
	}
	if w.metrics != nil {
		if counts, ok := o.Fleet.(interface{ Register(prometheus.Registerer) }); ok {
			counts.Register(w.metrics.Registry())
		}
		w.metrics.Watch(rn)
	}
	return rn, w, nil
}

// sdkDisabled reports whether the environment disables OpenTelemetry.
func sdkDisabled() bool { return envTrue("OTEL_SDK_DISABLED") }

func captureContents() bool { return envTrue("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") }

func envTrue(name string) bool {
	yes, err := strconv.ParseBool(cmp.Or(os.Getenv(name), "false"))
	return err == nil && yes
}

// watchers export the progress of runs. The zero value exports nothing.
type watchers struct {
	traces  *telemetry.Traces
	metrics *telemetry.Metrics
	left    bool
}

// registry is where the daemon registers its own metrics; nil without metrics.
func (w *watchers) registry() *prometheus.Registry {
	if w.metrics == nil {
		return nil
	}
	return w.metrics.Registry()
}

// leave makes close return without waiting.
func (w *watchers) leave() { w.left = true }

// watchTime limits how long a command waits for a collector at its end.
const watchTime = 5 * time.Second

// close sends pending data.
func (w *watchers) close() {
	ctx, cancel := context.WithTimeout(context.Background(), watchTime)
	defer cancel()
	if w.left {
		cancel()
	}
	if w.traces != nil {
		w.traces.Close(ctx)
	}
	if w.metrics != nil {
		w.metrics.Close(ctx)
	}
}
