package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"waza/runner/record"

	"github.com/stretchr/testify/require"
)

func onesAndZeros(passed, n int) []float64 {
	values := make([]float64, n)
	for i := range passed {
		values[i] = 1
	}
	return values
}

func TestMeanIntervalOfLittle(t *testing.T) {
	t.Parallel()
	require.Equal(t, record.Interval{Low: 0, High: 1}, MeanInterval(nil, 0.95))
	require.Equal(t, record.Interval{Low: 0, High: 1}, MeanInterval([]float64{math.NaN()}, 0.95))
	one := MeanInterval([]float64{0.8}, 0.95)
	require.Less(t, one.Low, 0.2, "one score says little")
	same := MeanInterval([]float64{0.8, 0.8, 0.8}, 0.95)
	require.Greater(t, same.High-same.Low, 0.4, "three equal scores leave uncertainty")
	require.True(t, same.Low < 0.8 && 0.8 < same.High)
	require.Equal(t, MeanInterval([]float64{0, 1}, 0.95), MeanInterval([]float64{-3, 7}, 0.95))
	require.Less(t, MeanInterval(onesAndZeros(900, 1000), 0.95).High-MeanInterval(onesAndZeros(900, 1000), 0.95).Low, 0.04)
}

func TestRatioInterval(t *testing.T) {
	t.Parallel()
	// One task of two trials on each side, by hand: the variances of the means are 1 and 4,
	// their squared coefficients of variation are 0.01 and 0.01, there are 2 degrees of freedom,
	// and t is 4.302653.
	i, ok := RatioInterval([]Amounts{{A: []float64{9, 11}, B: []float64{18, 22}}}, 0.95)
	require.True(t, ok)
	require.InDelta(t, 2*math.Exp(4.302653*math.Sqrt(0.02)), i.High, 1e-5)
	require.InDelta(t, 2/math.Exp(4.302653*math.Sqrt(0.02)), i.Low, 1e-5)
	for name, tasks := range map[string][]Amounts{
		"nothing":           nil,
		"a single trial":    {{A: []float64{1}, B: []float64{1, 2}}},
		"nothing varies":    {{A: []float64{1, 1}, B: []float64{2, 2}}},
		"all amounts are 0": {{A: []float64{0, 0}, B: []float64{1, 2}}},
		"overflow":          {{A: []float64{1e-300, 1}, B: []float64{1e100, 1e99}}},
	} {
		_, ok := RatioInterval(tasks, 0.95)
		require.False(t, ok, name)
	}
}

func TestStudentQuantile(t *testing.T) {
	t.Parallel()
	// Table values, two-sided.
	for freedom, want := range map[float64]float64{1: 12.706205, 2: 4.302653, 5: 2.570582, 30: 2.042272, 1e7: 1.959964} {
		require.InDelta(t, want, studentQuantile(0.95, freedom), 1e-5)
	}
	require.InDelta(t, 3.169273, studentQuantile(0.99, 10), 1e-5)
	require.True(t, math.IsInf(studentQuantile(0.95, 0), 1))
}

func BenchmarkMeanInterval(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, 1000)
	for i := range values {
		values[i] = rng.Float64()
	}
	for b.Loop() {
		MeanInterval(values, 0.95)
	}
}
