package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/telemetry"
)

// Each event of a run is counted once, and nothing is running at the end.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics()
	r := newRunner(t, "desk")
	m.Watch(r)
	var runs []*runner.Run
	for range 2 {
		runs = append(runs, start(t, r, fmt.Sprintf(suiteText, "desk")))
	}
	m.Close(t.Context()) // also waits for runs that have only just started
	require.Len(t, runs, 2)
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.Metric {
			name := f.GetName()
			for _, l := range s.Label {
				name += " " + l.GetValue()
			}
			got[name] = s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"waza_runs_total completed": 2, "waza_runs_total failed": 0, "waza_runs_running": 0, "waza_trials_running": 0,
		"waza_trials_total passed": 4, "waza_trials_total failed": 4, "waza_trials_total error": 4, "waza_trials_total skipped": 0,
		"waza_trial_duration_seconds": 12, "waza_tokens_total agent input": 12 * 12, "waza_tokens_total agent output": 12 * 3,
		"waza_cost_usd_total agent": 12 * 0.25,
	} {
		value, ok := got[name]
		require.True(t, ok, name)
		require.InDelta(t, want, value, 0, name)
	}
	problems, err := testutil.GatherAndLint(m.Registry())
	require.NoError(t, err)
	require.Empty(t, problems)
}
