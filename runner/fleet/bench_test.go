package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor/acp"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// BenchmarkOverhead measures the additional cost of a mock trial on a worker in the same
// process, compared with a run without a fleet. It reports µs and a multiple of a bare
// JetStream loop measured next to it: publish and consume an order, publish and consume a
// result, each of 2 KB. The limit is 5.
func BenchmarkOverhead(b *testing.B) {
	const trials = 20_000
	log := slog.New(slog.DiscardHandler)
	address, err := engine.Parse(fleettest.Server(b))
	require.NoError(b, err)
	connect := func(ctx context.Context, a engine.Address) (*engine.Conn, error) {
		return engine.Connect(ctx, a, engine.Options{Log: log})
	}
	conn, err := connect(b.Context(), address)
	require.NoError(b, err)
	defer conn.Close()
	w := worker.New(worker.Options{
		ID: worker.NewID(), Version: "bench", Slots: 200, Offer: offer.Of(nil, os.Environ()), Conn: conn, Dir: b.TempDir(),
		Executors: plan.Executors, Graders: builtin.Graders, Agents: acp.Judges{}, Limits: &provider.Limits{}, Log: log,
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	defer func() { w.Drain(); <-done }()

	suite := fmt.Sprintf("\n-- eval.yaml --\nname: bench\nconfig: {executor: mock, trials_per_task: %d, parallel: "+
		"true, workers: 1000}\ntasks: [{id: a, prompt: hello, expected: {output_contains: [hello]}}]\n",
		trials)
	perTrial := func(req record.Request, inFleet bool) time.Duration {
		o := runner.Options{StateDir: b.TempDir()}
		if inFleet {
			o.Fleet = fleet.New(fleet.Options{Connect: connect, Log: log})
		}
		r, err := runner.New(o)
		require.NoError(b, err)
		defer func() { _ = r.Close(context.Background()) }()
		start := time.Now()
		live := runnertest.Start(b, r, suite, req)
		<-live.Done()
		took := time.Since(start)
		progress, err := live.Progress()
		require.NoError(b, err)
		require.Equal(b, trials, progress.Trials.Done(), progress.Error)
		return took / trials
	}
	var overNATS, local, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		bare += bareLoop(b, conn.JetStream(), trials) / trials
		local += perTrial(record.Request{}, false)
		overNATS += perTrial(record.Request{Fleet: address.Servers[0]}, true)
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(n) / 1000 }
	b.ReportMetric(us(bare), "bare-µs/trial")
	b.ReportMetric(us(local), "local-µs/trial")
	b.ReportMetric(us(overNATS), "fleet-µs/trial")
	b.ReportMetric(us(overNATS-local)/us(bare), "overhead-x")
	b.ReportMetric(0, "ns/op")
}

// bareLoop publishes n orders, consumes them, publishes n results and consumes those.
func bareLoop(b *testing.B, js jetstream.JetStream, n int) time.Duration {
	ctx := b.Context()
	body := bytes.Repeat([]byte("x"), 2048)
	var consumers [2]jetstream.Consumer
	for i, name := range []string{"bare-orders", "bare-results"} {
		s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Retention: jetstream.WorkQueuePolicy})
		require.NoError(b, err)
		consumers[i], err = s.CreateConsumer(ctx,
			jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000})
		require.NoError(b, err)
		defer func() { require.NoError(b, js.DeleteStream(ctx, name)) }()
	}
	start := time.Now()
	over := make(chan struct{})
	got := 0
	results, err := consumers[1].Consume(func(m jetstream.Msg) {
		_ = m.Ack()
		if got++; got == n {
			close(over)
		}
	})
	require.NoError(b, err)
	defer results.Stop()
	orders, err := consumers[0].Consume(func(m jetstream.Msg) {
		for {
			if _, err := js.PublishAsync("bare-results", body); err == nil {
				break
			}
		}
		_ = m.Ack()
	})
	require.NoError(b, err)
	defer orders.Stop()
	for range n {
		for {
			if _, err := js.PublishAsync("bare-orders", body); err == nil {
				break
			}
		}
	}
	<-over
	return time.Since(start)
}
