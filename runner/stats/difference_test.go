package stats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/stats"
)

// A cached difference of rates equals a new one, for each number of passes and each confidence.
func TestDifferenceOfRates(t *testing.T) {
	t.Parallel()
	for _, confidence := range []float64{0.9, 0.95} {
		for a := range 4 {
			for b := range 6 {
				before, after := stats.Share{Passed: a, N: 3}, stats.Share{Passed: b, N: 5}
				want, ok := stats.Difference([]stats.PartPair{{A: stats.RatePart(before), B: stats.RatePart(after)}}, confidence)
				require.True(t, ok)
				for range 2 {
					got, ok := stats.DifferenceOfRates(before, after, confidence)
					require.True(t, ok)
					require.Equal(t, want, got)
				}
			}
		}
	}
	_, ok := stats.DifferenceOfRates(stats.Share{}, stats.Share{Passed: 1, N: 1}, 0.95)
	require.False(t, ok)
}
