package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
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
	"waza/runner/pause"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// BenchmarkFleet measures the numbers that docs/scale.md compares with the simulation. A fleet
// of real workers, with a real owner and server, must agree with the simulation within the
// factor.
func BenchmarkFleet(b *testing.B) {
	for _, c := range checks {
		if c.processor {
			continue
		}
		b.Run(c.what, func(b *testing.B) {
			var measured, simulated float64
			for b.Loop() {
				measured, simulated = realFleet(b, c.design), simulate(c.design, 1).rate
			}
			report(b, measured, simulated)
		})
	}
}

// realFleet runs a design, and returns the trials per second in its middle half.
func realFleet(t testing.TB, d design) float64 {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var mu sync.Mutex
	var ends []time.Time
	agent := runnertest.Agent(func(ctx context.Context, _ *executor.Trial) (string, error) {
		err := pause.For(ctx, d.length)
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, time.Now())
		return "done", err
	})
	agents := executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return agent, nil },
	})
	url := fleettest.Server(t)
	connect := func(ctx context.Context, a engine.Address) (*engine.Conn, error) {
		return engine.Connect(ctx, a, engine.Options{Log: log})
	}
	address, err := engine.Parse(url)
	require.NoError(t, err)
	offers := offer.Of(nil, os.Environ())
	offers.Executors = append(offers.Executors, "agent")
	ctx, end := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end()
	for range d.workers {
		conn, err := connect(ctx, address)
		require.NoError(t, err)
		w := worker.New(worker.Options{
			ID: worker.NewID(), Version: "test", Slots: d.slots, Offer: offers, Conn: conn, Dir: t.TempDir(),
			Executors: agents, Graders: builtin.Graders, Limits: &provider.Limits{}, Log: log,
		})
		workers.Go(func() {
			defer conn.Close()
			_ = w.Run(ctx)
		})
	}
	owner, err := runner.New(runner.Options{
		StateDir: t.TempDir(), Executors: agents, Fleet: fleet.New(fleet.Options{Connect: connect, Log: log}),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, owner.Close(context.Background())) }()
	suite := fmt.Sprintf("-- eval.yaml --\nname: real\nconfig: {executor: agent, trials_per_task: %d}\ntasks:\n"+
		"  - {id: a, inputs: {prompt: x}, expected: {output_contains: [done]}}\n", d.trials)
	live := runnertest.Start(t, owner, suite, record.Request{Fleet: url, Workers: d.depth})
	<-live.Done()
	require.Len(t, ends, d.trials)
	from, to := len(ends)/4, len(ends)*3/4
	return float64(to-from) / ends[to].Sub(ends[from]).Seconds()
}
