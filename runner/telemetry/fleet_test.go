package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/telemetry"
)

// The trace of a run contains trials that workers executed, like all other trials.
func TestTracesOfFleet(t *testing.T) {
	t.Parallel()
	kinds := executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "desk"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return agent{}, nil },
	})
	log := slog.New(slog.DiscardHandler)
	address, err := engine.Parse(fleettest.Server(t))
	require.NoError(t, err)
	connect := func(ctx context.Context, a engine.Address) (*engine.Conn, error) {
		return engine.Connect(ctx, a, engine.Options{Log: log})
	}
	conn, err := connect(t.Context(), address)
	require.NoError(t, err)
	defer conn.Close()
	offers := offer.Of(nil, os.Environ())
	offers.Executors = append(offers.Executors, "desk")
	hand := worker.New(worker.Options{
		ID: "hand", Slots: 3, Offer: offers, Conn: conn, Dir: t.TempDir(), Executors: kinds, Graders: builtin.Graders,
		Limits: &provider.Limits{}, Log: log,
	})
	ended := make(chan error, 1)
	go func() { ended <- hand.Run(context.Background()) }()

	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: kinds, Fleet: fleet.New(fleet.Options{Connect: connect, Log: log})})
	require.NoError(t, err)
	c := newCollector(t)
	traces, err := telemetry.NewTraces(telemetry.TraceOptions{Endpoint: c.URL, Version: "1.2"})
	require.NoError(t, err)
	traces.Watch(r)
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, suiteText, "desk"), 0o600))
	p, err := r.Planner().Prepare(t.Context(), path, record.Request{Fleet: address.String()}, plan.PrepareOptions{})
	require.NoError(t, err)
	run, err := r.Start(p.Plan)
	require.NoError(t, err)
	<-run.Done()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	traces.Close(ctx)
	hand.Drain()
	require.NoError(t, <-ended)
	root := checkTrace(t, c, run)
	require.Equal(t, address.String(), attributesOf(root.Attributes)["waza.fleet"])
}
