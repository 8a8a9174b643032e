package stats

import (
	"math"
	"testing"
	"waza/runner/record"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The rows named Newcombe are method 3 of table I in Newcombe (1998), "Two-sided confidence
// intervals for the single proportion".
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		passed, n  int
		confidence float64
		low, high  float64
	}{
		{"Newcombe 81 of 263", 81, 263, 0.95, 0.2553, 0.3662},
		{"Newcombe 15 of 148", 15, 148, 0.95, 0.0624, 0.1605},
		{"Newcombe 0 of 20", 0, 20, 0.95, 0, 0.1611},
		{"Newcombe 1 of 29", 1, 29, 0.95, 0.0061, 0.1718},
		{"all of 20 mirrors none of 20", 20, 20, 0.95, 0.8389, 1},
		{"one of one", 1, 1, 0.95, 0.2065, 1},
		{"90 percent", 5, 10, 0.90, 0.2693, 0.7307},
		{"no trials", 0, 0, 0.95, 0, 1},
		{"fewer than no trials", 3, -1, 0.95, 0, 1},
		{"more passed than run", 30, 20, 0.95, 0.8389, 1},
		{"fewer than none passed", -3, 20, 0.95, 0, 0.1611},
		{"odd confidence is the default", 81, 263, 95, 0.2553, 0.3662},
		{"NaN confidence is the default", 81, 263, math.NaN(), 0.2553, 0.3662},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Wilson(c.passed, c.n, c.confidence)
			require.InDelta(t, c.low, got.Low, 5e-5)
			require.InDelta(t, c.high, got.High, 5e-5)
		})
	}
}

// A share of whole numbers equals Wilson's interval. Fractional values of n give intervals
// between those, and no observations leave everything open.
func TestWilsonShare(t *testing.T) {
	t.Parallel()
	require.Equal(t, Wilson(3, 7, DefaultConfidence), WilsonShare(3.0/7, 7, DefaultConfidence))
	low, mid, high := WilsonShare(0.65, 5, 0.95), WilsonShare(0.65, 25/4.5, 0.95), WilsonShare(0.65, 6, 0.95)
	require.True(t, low.Low < mid.Low && mid.Low < high.Low && high.High < mid.High && mid.High < low.High)
	// By hand: z² = 3.841459; z²/n = 0.691463; center 0.995731; spread 1.959964·√(0.0409500+0.0311158) = 0.526150.
	require.InDelta(t, 0.469581/1.691463, mid.Low, 1e-5)
	require.InDelta(t, 1.521881/1.691463, mid.High, 1e-5)
	for _, n := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-300} {
		require.Equal(t, record.Interval{Low: 0, High: 1}, WilsonShare(0.5, n, DefaultConfidence), "%v", n)
	}
	require.Zero(t, WilsonShare(math.NaN(), 4, DefaultConfidence).Low)
	require.Equal(t, 1.0, WilsonShare(1.5, 4, DefaultConfidence).High)
}

func TestWilsonProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		passed := rapid.IntRange(0, n).Draw(t, "passed")
		confidence := rapid.Float64Range(0.01, 0.999).Draw(t, "confidence")
		rate := float64(passed) / float64(n)

		i := Wilson(passed, n, confidence)
		require.True(t, 0 <= i.Low && i.Low <= rate && rate <= i.High && i.High <= 1, "%v around %v", i, rate)

		mirror := Wilson(n-passed, n, confidence)
		require.InDelta(t, 1-mirror.High, i.Low, 1e-12)

		more := Wilson(2*passed, 2*n, confidence)
		require.LessOrEqual(t, more.High-more.Low, i.High-i.Low+1e-12, "more trials must not widen it")

		surer := Wilson(passed, n, (1+confidence)/2)
		require.GreaterOrEqual(t, surer.High-surer.Low, i.High-i.Low-1e-12)
	})
}

// A rate of 0 or 1 must keep its end of the interval exactly. Otherwise a report shows
// "99.99999999 %".
func TestWilsonEndsAreExact(t *testing.T) {
	t.Parallel()
	for n := 1; n < 2000; n++ {
		require.Zero(t, Wilson(0, n, DefaultConfidence).Low)
		require.Equal(t, 1.0, Wilson(n, n, DefaultConfidence).High)
	}
}
