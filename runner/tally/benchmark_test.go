package tally_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/tally"
)

// The measurements of a benchmark, computed by hand: means, their intervals by Student's t, and
// costs.
func TestBenchmarkResult(t *testing.T) {
	t.Parallel()
	cells := []*record.Cell{
		{Name: "m,context_tokens=0", Model: "m", Params: map[string]any{"context_tokens": 0}},
		{Name: "m,context_tokens=5000", Model: "m", Params: map[string]any{"context_tokens": 5000}},
	}
	trial := func(v record.Verdict, first, speed float64, in, out int64, cost float64) *record.Trial {
		return &record.Trial{
			Verdict: v, Speed: &record.Speed{FirstTokenMS: first, TokensPerSecond: speed, Requests: 1},
			Usage: &record.Usage{InputTokens: in, OutputTokens: out, CostUSD: cost},
		}
	}
	rec := &record.Run{
		Suite: record.SuiteRef{Kind: eval.Benchmark},
		Tasks: []record.TaskRef{
			{ID: "a0", Task: "a0", Cell: cells[0]}, {ID: "a5", Task: "a5", Cell: cells[1]},
			{ID: "b0", Task: "b0", Cell: cells[0]},
		},
	}
	run := tally.NewDraft(rec)
	run.AddTrial(0, trial(record.Passed, 200, 100, 10, 50, 0.001))
	run.AddTrial(0, trial(record.Failed, 210, 100, 10, 70, 0.002))
	run.AddTrial(2, trial(record.NeedsReview, 220, 130, 40, 60, 0.003)) // of another task, and counted the same
	run.AddTrial(0, trial(record.Errored, 999, 999, 999, 999, 999))
	run.AddTrial(0, trial(record.TimedOut, 999, 999, 999, 999, 999))
	run.AddTrial(0, &record.Trial{Verdict: record.Passed}) // without measurements
	run.AddTrial(1, trial(record.Passed, 300, 0, 0, 0, 0))
	sum := run.Summary(nil)
	require.Nil(t, sum.Benchmark, "its cells have it")
	b := sum.Groups[0].Benchmark
	require.Equal(t, 3, b.Trials)
	measure := func(m *record.Measure, mean, low, high float64) {
		t.Helper()
		require.Equal(t, 3, m.N)
		require.InDelta(t, mean, m.Mean, 1e-9)
		require.InDelta(t, low, m.MeanInterval.Low, 0.05)
		require.InDelta(t, high, m.MeanInterval.High, 0.05)
	}
	measure(b.FirstTokenMS, 210, 185.2, 234.8)   // ± 4.3027 × 10 / √3
	measure(b.TokensPerSecond, 110, 67.0, 153.0) // ± 4.3027 × 17.3205 / √3
	measure(b.OutputTokens, 60, 35.2, 84.8)
	measure(b.InputTokens, 20, -23.0, 63.0)
	require.InDelta(t, 0.002, b.CostUSD.Mean, 1e-12)

	require.Equal(t, "not answered and not measured: 2 of 5 trials of a0; a model can look faster without them", b.Note)

	one := sum.Groups[1].Benchmark
	require.Empty(t, one.Note)
	require.Equal(t, 1, one.Trials)
	require.InDelta(t, 300, one.FirstTokenMS.Mean, 0)
	require.Nil(t, one.FirstTokenMS.MeanInterval, "one trial has no interval")
	require.Nil(t, one.TokensPerSecond)
	require.Nil(t, one.CostUSD)

	alone := &record.Run{Suite: record.SuiteRef{Kind: eval.Benchmark}, Tasks: []record.TaskRef{{ID: "a"}}}
	run = tally.NewDraft(alone)
	require.Nil(t, run.Summary(nil).Benchmark)
	run.AddTrial(0, trial(record.Passed, 200, 100, 10, 50, 0.001))
	require.InDelta(t, 200, run.Summary(nil).Benchmark.FirstTokenMS.Mean, 0)
	run = tally.NewDraft(alone)
	run.AddTrial(0, trial(record.TimedOut, 0, 0, 0, 0, 0))
	b = run.Summary(nil).Benchmark
	require.Zero(t, b.Trials)
	require.Nil(t, b.FirstTokenMS)
	require.Contains(t, b.Note, "1 of 1 trial of a", "a model that answers nothing is in the tables")
	alone.Suite.Kind = ""
	run = tally.NewDraft(alone)
	run.AddTrial(0, trial(record.Passed, 200, 100, 10, 50, 0.001))
	require.Nil(t, run.Summary(nil).Benchmark, "it is no benchmark")
}
