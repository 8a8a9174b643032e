package main

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/fleettest"
)

// factor is the tolerance of the simulation, because tests share their machine with others.
const factor = 2.0

// BenchmarkJetStream measures the trials per second of JetStream with workers that pull orders
// and wait. They must agree with the simulation within the factor.
func BenchmarkJetStream(b *testing.B) {
	nc, err := nats.Connect(fleettest.Server(b))
	require.NoError(b, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	for _, d := range []design{
		{workers: 4, slots: 10, runs: 1, length: 100 * time.Millisecond, depth: 200, trials: 800, constant: true},
		{workers: 20, slots: 10, runs: 1, length: 200 * time.Millisecond, depth: 50, trials: 500, constant: true},
	} {
		limit, _ := d.limit()
		b.Run(resourceNames[limit], func(b *testing.B) {
			var measured, simulated float64
			for b.Loop() {
				measured, simulated = closedLoop(b.Context(), b, js, d), simulate(d, 1).rate
			}
			report(b, measured, simulated)
		})
	}
}

// report reports trials per second, and fails if the simulation differs by more than the factor.
func report(b *testing.B, measured, simulated float64) {
	b.ReportMetric(measured, "trials/s")
	b.ReportMetric(simulated, "simulated/s")
	b.ReportMetric(0, "ns/op")
	if measured < simulated/factor || measured > simulated*factor {
		b.Errorf("%.0f trials a second measured, %.0f simulated", measured, simulated)
	}
}

// closedLoop runs a design with a real server. A goroutine for each slot pulls an order, waits
// for the length of a trial, publishes a result and acknowledges the order. It returns the
// trials per second.
func closedLoop(ctx context.Context, t testing.TB, js jetstream.JetStream, d design) float64 {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{js: js, replicas: 1}
	orders, results, err := b.streams(ctx)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, js.DeleteStream(context.WithoutCancel(ctx), "ORDERS"))
		require.NoError(t, js.DeleteStream(context.WithoutCancel(ctx), "RESULTS"))
	}()
	started := time.Now()
	require.NoError(t, b.loop(ctx, orders, results,
		loopDesign{trials: d.trials, atOnce: d.depth, slots: d.workers * d.slots, length: d.length}))
	return float64(d.trials) / time.Since(started).Seconds()
}
