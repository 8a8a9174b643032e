// Package fleets implements the commands waza worker and waza fleet, and lets the workers of a
// fleet do runs of this process. Call [WorkerCommand] and [Remote].
package fleets

import (
	"context"
	"io"
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
	"waza/runner/trial"
)

// Program holds the parts of the program that the commands need.
type Program struct {
	Stdout  *output.Stdout
	Stderr  io.Writer
	Version string
	// StateDir returns the absolute path of the state directory.
	StateDir func() (string, error)
	// Logger returns a logger that writes to stderr from a level up, as JSON if that is set.
	Logger func(level slog.Level, json bool) *slog.Logger
}

// Remote lets the workers of fleets do trials. For an embedded fleet, it adds a worker in
// this process.
func Remote(p Program, log *slog.Logger) trial.RemoteBackend {
	e := &elsewhere{p: p, log: log, metrics: fleet.NewMetrics()}
	e.fleet = fleet.New(fleet.Options{Connect: e.connect, Log: log, Metrics: e.metrics})
	return e
}

type elsewhere struct {
	p     Program
	log   *slog.Logger
	fleet *fleet.Fleet

	metrics *fleet.Metrics
}

// Register registers the metrics of runs on fleets.
func (e *elsewhere) Register(r prometheus.Registerer) { e.metrics.Register(r) }

func (e *elsewhere) connect(ctx context.Context, a engine.Address) (*engine.Conn, error) {
	state, err := e.p.StateDir()
	if err != nil {
		return nil, err
	}
	return engine.Connect(ctx, a, engine.Options{Name: "waza run", Log: e.log, State: state})
}

// Open implements [trial.RemoteBackend].
func (e *elsewhere) Open(ctx context.Context, a *trial.RemoteRun) (trial.RemoteTrials, error) {
	doer, err := e.fleet.Open(ctx, a)
	if err != nil {
		return nil, err
	}
	if !a.Address.Embedded || a.Address.Slots == 0 {
		return doer, nil
	}
	n := a.Address.Slots
	if n < 0 {
		n = min(a.AtOnce, max(runtime.NumCPU(), a.Suite.Config.Workers))
	}
	beside, err := e.beside(ctx, a.Address, n)
	if err != nil {
		_ = doer.Close()
		return nil, err
	}
	return &besides{doer, beside}, nil
}

// beside starts a worker in this process. The caller calls stop to end it.
func (e *elsewhere) beside(ctx context.Context, address engine.Address, slots int) (stop func(), err error) {
	conn, err := e.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	o, err := e.p.options(conn, worker.NewID(), slots, offer.Of(nil, os.Environ()), e.log)
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
			e.log.Error("the worker in this process ended", "error", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

// besides is a run whose process also has a worker.
type besides struct {
	trial.RemoteTrials
	stop func()
}

// Close ends the run and then the worker, which has no work left for the run.
func (b *besides) Close() error {
	err := b.RemoteTrials.Close()
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
