package power_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/power"
	"waza/runner/stats"
)

// The truth is R's noncentral t distribution:
//
//	1 - pt(q, k-1, gain/se) + pt(-q, k-1, gain/se), with q = qt(.975, k-1), se = sqrt((within/n + between)/k)
func TestPowerForTasksLikeThese(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gain, within, between float64
		k, n                  int
		want                  float64
	}{
		{0.05, 0.3, 0.0064, 20, 5, 0.130780},
		{0.1, 0.3, 0.0064, 20, 5, 0.377665},
		{0.1, 0.3, 0.0064, 5, 50, 0}, // no test of fewer than six tasks shows anything
		{0.05, 0.3, 0.0064, 80, 20, 0.855373},
		{0.1, 0.2, 0.02, 10, 1000, 0.510436},
	} {
		require.InDelta(t, c.want, power.Like(c.gain, c.within, c.between, c.k, c.n), 2e-6, "%+v", c)
	}
	require.Zero(t, power.Like(0.1, 0.3, 0, 1, 10))
	require.InDelta(t, 1, power.Like(0.1, 0, 0, 6, 10), 0)
	// Many tasks: the normal distribution.
	require.InDelta(t, power.These(0.05, 0.3, 5000, 1), power.Like(0.05, 0.3, 0, 5000, 1), 1e-3)
}

// R: pnorm(d - z) + pnorm(-d - z) with d = gain/sqrt(within/(k n)) and z = qnorm(.975).
func TestPowerForTheseTasks(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.05, power.These(1e-9, 0.3, 20, 5), 1e-9)
	require.InDelta(t, 0.8, power.These(0.05, 0.3, 20, 47), 0.005)
	require.InDelta(t, 1, power.These(0.05, 0, 20, 47), 0)
}

func TestShifted(t *testing.T) {
	t.Parallel()
	rates := []float64{0, 0.2, 0.5, 0.9, 1}
	b, _ := power.Shifted(rates, 0.1)
	sum := 0.0
	for i := range b {
		require.GreaterOrEqual(t, b[i], rates[i])
		sum += b[i] - rates[i]
	}
	require.InDelta(t, 0.5, sum, 1e-9)
	require.Zero(t, b[0])
	b, most := power.Shifted(rates, 0.3)
	require.Nil(t, b)
	require.InDelta(t, 0.28, most, 1e-6)
}

func TestPlan(t *testing.T) {
	t.Parallel()
	usd := 0.01
	p, err := power.New(power.Question{
		Tasks: []string{"a", "b", "c"}, Detect: 0.1, Power: 0.8,
		Records: power.Records{
			Runs: 2, Rates: map[string]stats.Share{"a": {Passed: 8, N: 10}, "b": {Passed: 2, N: 10}},
			PerTrial: power.PerTrial{CostUSD: &usd},
			A:        power.Run{ID: "x", Rates: map[string]stats.Share{"a": {Passed: 5, N: 5}, "b": {Passed: 0, N: 5}}},
			B:        power.Run{ID: "y", Rates: map[string]stats.Share{"a": {Passed: 3, N: 5}, "b": {Passed: 2, N: 5}}},
		},
	})
	require.NoError(t, err)
	mean := (10 + 2*power.AssumedRate) / 22
	require.InDelta(t, (8+2*mean)/12, p.Tasks[0].Rate, 1e-12)
	require.InDelta(t, mean, p.Tasks[2].Rate, 1e-12, "the mean of the others")
	require.Equal(t, 2, p.Records.EffectTasks)
	require.Equal(t, []string{"x", "y"}, p.Records.EffectRuns)
	// Gains of -0.4 and 0.4: their variance of 0.32, minus 0.06 within tasks, and the assumption as ten tasks.
	require.InDelta(t, math.Sqrt((0.26+10*0.0064)/11), p.Records.EffectSD, 1e-12)

	these := p.Cheapest(func(r power.Row) *float64 { return r.These })
	require.Equal(t, 3, these.Tasks)
	require.GreaterOrEqual(t, *these.These, 0.8)
	require.InDelta(t, 0.01*float64(these.All), *these.CostUSD, 1e-9)
	like := p.Cheapest(func(r power.Row) *float64 { return r.Like })
	require.Greater(t, like.Tasks, 12, "a row with enough tasks")
	require.GreaterOrEqual(t, *like.Like, 0.8)
	require.Len(t, p.Decide, 3)
	require.InDelta(t, 0.02*p.Decide[0].Pairs, *p.Decide[0].CostUSD, 1e-9)

	_, err = power.New(power.Question{Tasks: []string{"a"}, Detect: 0.5, Power: 0.8})
	require.ErrorContains(t, err, "no agent can gain 50 points")
}
