package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"waza/runner/record"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// alternating returns NIST's data sets NumAcc2 to NumAcc4 (Statistical Reference Datasets): one
// value, then five hundred times one 0.1 below and one 0.1 above it. Their certified standard
// deviation is exactly 0.1; textbook one-pass formulas lose all digits of it.
func alternating(base float64) []float64 {
	values := []float64{base + 0.2}
	for range 500 {
		values = append(values, base+0.1, base+0.3)
	}
	return values
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name   string
		scores []float64
		want   record.Distribution
	}{
		{"none", nil, record.Distribution{}},
		{"nothing usable", []float64{nan, inf, -inf}, record.Distribution{}},
		{"one", []float64{0.7}, record.Distribution{N: 1, Mean: 0.7, Median: 0.7, Min: 0.7, Max: 0.7, StdDev: 0}},
		{"two", []float64{1, 0}, record.Distribution{N: 2, Mean: 0.5, Median: 0.5, Min: 0, Max: 1, StdDev: math.Sqrt2 / 2}},
		{"odd count", []float64{9, 1, 2}, record.Distribution{N: 3, Mean: 4, Median: 2, Min: 1, Max: 9, StdDev: 4.358898943540674}},
		{
			"textbook", []float64{2, 4, 4, 4, 5, 5, 7, 9},
			record.Distribution{N: 8, Mean: 5, Median: 4.5, Min: 2, Max: 9, StdDev: 2.138089935299395},
		},
		{"NaN is left out", []float64{nan, 1, inf, 0}, record.Distribution{N: 2, Mean: 0.5, Median: 0.5, Min: 0, Max: 1, StdDev: math.Sqrt2 / 2}},
		{"NIST NumAcc2", alternating(1), record.Distribution{N: 1001, Mean: 1.2, Median: 1.2, Min: 1.1, Max: 1.3, StdDev: 0.1}},
		{
			"NIST NumAcc3", alternating(1e6),
			record.Distribution{N: 1001, Mean: 1000000.2, Median: 1000000.2, Min: 1000000.1, Max: 1000000.3, StdDev: 0.1},
		},
		{
			"NIST NumAcc4", alternating(1e7),
			record.Distribution{N: 1001, Mean: 10000000.2, Median: 10000000.2, Min: 10000000.1, Max: 10000000.3, StdDev: 0.1},
		},
		{
			"beyond bounds", []float64{math.MaxFloat64, -math.MaxFloat64},
			record.Distribution{N: 2, Mean: 0, Median: 0, Min: -1e100, Max: 1e100, StdDev: 1e100 * math.Sqrt2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(c.want, Describe(c.scores), cmpopts.EquateApprox(1e-8, 1e-12)))
		})
	}
}

// Ten scores of 0.1 add up to 0.9999999999999999; their mean must still be 0.1.
func TestEqualScoresHaveThatMeanExactly(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{0.1, 0.7, 1.0 / 3, 1} {
		for n := 1; n < 200; n++ {
			scores := make([]float64, n)
			for i := range scores {
				scores[i] = v
			}
			require.Equal(t, record.Distribution{N: n, Mean: v, Median: v, Min: v, Max: v}, Describe(scores))
		}
	}
}

// anyFloats draws slices with every kind of float64.
func anyFloats() *rapid.Generator[[]float64] {
	odd := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, math.Copysign(0, -1)})
	return rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64(), odd), 0, 60)
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Halves of the least number above 0 are 0.
func TestMedianOfLeastNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, 5e-324, Describe([]float64{5e-324, 5e-324}).Median)
}

func TestNothingButNumbersLeaves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := anyFloats().Draw(t, "values")
		before := slices.Clone(values)

		s := Describe(values)
		require.True(t, finite(s.Mean, s.Median, s.Min, s.Max, s.StdDev), "%+v", s)
		require.True(t, s.Min <= s.Mean && s.Mean <= s.Max && s.Min <= s.Median && s.Median <= s.Max, "%+v", s)
		require.GreaterOrEqual(t, s.StdDev, 0.0)

		i := MeanInterval(values, 0.95)
		require.True(t, 0 <= i.Low && i.Low <= i.High && i.High <= 1, "%+v", i)

		require.Empty(t, cmp.Diff(before, values, cmpopts.EquateNaNs()), "Describe does not change the caller's values")
	})
}

func TestOrderChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := anyFloats().Draw(t, "values")
		shuffled := slices.Clone(values)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		require.Equal(t, Describe(values), Describe(shuffled))
		require.Equal(t, MeanInterval(values, 0.95), MeanInterval(shuffled, 0.95))
	})
}

// Other programs read the numbers by these names.
func TestJSONNames(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]any{record.Distribution{}, record.Interval{}, record.AtK{}})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"n": 0, "mean": 0, "median": 0, "min": 0, "max": 0, "stdDev": 0},
		{"low": 0, "high": 0},
		{"k": 0, "passAtK": 0, "passHatK": 0}]`, string(got))
}
