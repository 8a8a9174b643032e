package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/worker"
	"waza/runner/runnertest"
)

// samples returns the values of a registry by name and label values, and the counts of
// histograms.
func samples(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[strings.TrimPrefix(name, "waza_")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// The metrics of owner and worker agree with the record of the run.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	owners, workers := prometheus.NewRegistry(), prometheus.NewRegistry()
	metrics := fleet.NewMetrics()
	metrics.Register(owners)
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: s.agents, Fleet: fleet.New(fleet.Options{
		Connect: s.reach, Log: slog.New(slog.DiscardHandler), Metrics: metrics,
	})})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	h := s.work(3, "", func(o *worker.Options) { o.Metrics = worker.NewMetrics(workers) })
	live := runnertest.Start(t, r, fmt.Sprintf(twoTasks, 10), s.request(""))
	<-live.Done()
	require.Equal(t, 20, runnertest.ResultOf(t, live).Summary.Trials.Passed)
	h.awaitDone(t, 20)

	o := samples(t, owners)
	require.EqualValues(t, 20, o["fleet_orders_total published"])
	require.EqualValues(t, 20, o["fleet_orders_total recorded"])
	require.Zero(t, o["fleet_orders_total again"])
	require.Zero(t, o["fleet_results_duplicate_total"])
	require.Zero(t, o["fleet_orders_waiting"])
	require.Zero(t, o["fleet_orders_begun"])
	require.Equal(t, o["fleet_order_seconds queue"], o["fleet_order_seconds work"])

	w := samples(t, workers)
	require.EqualValues(t, 20, w["worker_trials_total passed"])
	require.EqualValues(t, 3, w["worker_slots"])
	require.Zero(t, w["worker_slots_busy"])
	require.EqualValues(t, 20, w["worker_order_seconds prepare"])
	require.EqualValues(t, 20, w["worker_order_seconds trial"])
	require.Positive(t, w["worker_files_received_bytes_total"])
	require.Eventually(t, func() bool { return samples(t, workers)["worker_order_seconds send"] == 20 }, time.Minute, 5*time.Millisecond)
}

// reach connects an owner.
func (s *site) reach(ctx context.Context, a engine.Address) (*engine.Conn, error) {
	return engine.Connect(ctx, a, engine.Options{Log: slog.New(slog.DiscardHandler)})
}
