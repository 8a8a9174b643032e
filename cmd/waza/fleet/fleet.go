// Package fleet implements the commands waza worker and waza fleet, and lets the workers of a
// fleet do runs of this process. Call [WorkerCommand] and [Backend].
package fleet

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"waza/cmd/waza/output"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/trial"
)

// Program holds the parts of the program that the commands need.
type Program struct {
	output.Streams
	Version string
	// StateDir returns the absolute path of the state directory.
	StateDir func() (string, error)
	// Tiers returns the tiers of sandboxes that this machine has, the strongest first. Nil means none.
	Tiers func() []record.Tier
}

// offer returns what this machine offers to trials.
func (p Program) offer(labels []string) *offer.Offer {
	o := offer.Of(labels, os.Environ())
	if p.Tiers != nil {
		o.Sandboxes = p.Tiers()
	}
	return o
}

// Backend lets the workers of fleets execute trials. For an embedded fleet, it adds a worker in
// this process.
func Backend(p Program, log *slog.Logger) trial.FleetBackend {
	b := &backend{p: p, log: log, metrics: fleet.NewMetrics()}
	b.fleet = fleet.New(fleet.Options{Connect: b.connect, Log: log, Metrics: b.metrics})
	return b
}

type backend struct {
	p     Program
	log   *slog.Logger
	fleet *fleet.Fleet

	metrics *fleet.Metrics
}

// Register registers the metrics of runs on fleets.
func (b *backend) Register(r prometheus.Registerer) { b.metrics.Register(r) }

func (b *backend) connect(ctx context.Context, a engine.Address) (*engine.Conn, error) {
	return b.p.connect(ctx, a, engine.Options{Name: "waza run", Log: b.log})
}

// Open implements [trial.FleetBackend].
func (b *backend) Open(ctx context.Context, a *trial.FleetRun) (trial.FleetTrials, error) {
	trials, err := b.fleet.Open(ctx, a)
	if err != nil {
		return nil, err
	}
	if !a.Address.Embedded || a.Address.Slots == 0 {
		return trials, nil
	}
	n := a.Address.Slots
	if n < 0 {
		n = min(a.AtOnce, max(runtime.NumCPU(), a.Suite.Config.Workers))
	}
	stop, err := b.startWorker(ctx, a.Address, n)
	if err != nil {
		_ = trials.Close()
		return nil, err
	}
	return &withWorker{trials, stop}, nil
}

// Forget implements [trial.FleetBackend].
func (b *backend) Forget(ctx context.Context, address engine.Address, runID string) error {
	return b.fleet.Forget(ctx, address, runID)
}

// startWorker starts a worker in this process. The caller calls stop to end it.
func (b *backend) startWorker(ctx context.Context, address engine.Address, slots int) (stop func(), err error) {
	conn, err := b.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	o, err := b.p.options(conn, worker.NewID(), slots, b.p.offer(nil), b.log)
	if err != nil {
		conn.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close()
		if err := worker.New(o).Run(ctx); err != nil && ctx.Err() == nil {
			b.log.Error("the worker in this process ended", "error", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

// withWorker is a run whose process also has a worker.
type withWorker struct {
	trial.FleetTrials
	stop func()
}

// Close ends the run and then the worker, which has no work left for the run.
func (b *withWorker) Close() error {
	err := b.FleetTrials.Close()
	b.stop()
	return err
}

// options returns the options of a worker of this program.
func (p Program) options(conn *engine.Conn, id string, slots int, has *offer.Offer, log *slog.Logger) (worker.Options, error) {
	state, err := p.StateDir()
	return worker.Options{
		ID: id, Version: p.Version, Slots: slots, Offer: has, Conn: conn, Dir: filepath.Join(state, "worker"),
		Executors: executors(), Graders: builtin.Graders, Agents: acp.Judges{}, Limits: &provider.Limits{}, Log: log,
	}, err
}

// executors returns the executors that need nothing of this process.
func executors() *executor.Registry { return plan.Executors }
