package stats

import (
	"math"
	"testing"
	"waza/runner/record"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The rows named Newcombe are method 5 of table I in Newcombe (1998), "Two-sided confidence
// intervals for the single proportion". SciPy's binomtest(k, n).proportion_ci(method="exact")
// gives the same.
func TestClopperPearson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		passed, n  int
		confidence float64
		low, high  float64
	}{
		{"Newcombe 81 of 263", 81, 263, 0.95, 0.2527, 0.3676},
		{"Newcombe 15 of 148", 15, 148, 0.95, 0.0578, 0.1617},
		{"Newcombe 0 of 20", 0, 20, 0.95, 0, 0.1684},
		{"Newcombe 1 of 29", 1, 29, 0.95, 0.0009, 0.1776},
		{"all of 20 mirrors none of 20", 20, 20, 0.95, 0.8316, 1},
		{"one of one", 1, 1, 0.95, 0.025, 1},
		{"5 of 10", 5, 10, 0.95, 0.1871, 0.8129},
		{"90 percent", 5, 10, 0.90, 0.2224, 0.7776},
		{"no trials", 0, 0, 0.95, 0, 1},
		{"fewer than no trials", 3, -1, 0.95, 0, 1},
		{"more passed than run", 30, 20, 0.95, 0.8316, 1},
		{"fewer than none passed", -3, 20, 0.95, 0, 0.1684},
		{"odd confidence is the default", 81, 263, 95, 0.2527, 0.3676},
		{"NaN confidence is the default", 81, 263, math.NaN(), 0.2527, 0.3676},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ClopperPearson(c.passed, c.n, c.confidence)
			require.InDelta(t, c.low, got.Low, 5e-5)
			require.InDelta(t, c.high, got.High, 5e-5)
		})
	}
	// By definition: at a limit, the outcome or a more extreme one has the probability 2.5 %.
	for _, n := range []int{2, 7, 40, 300} {
		for k := 1; k < n; k++ {
			i := ClopperPearson(k, n, DefaultConfidence)
			require.InDelta(t, 0.025, 1-binomialBelow(n, k-1, i.Low), 1e-9, "%d of %d", k, n)
			require.InDelta(t, 0.025, binomialBelow(n, k, i.High), 1e-9, "%d of %d", k, n)
		}
	}
	require.InDelta(t, 1-math.Pow(0.025, 1.0/7), ClopperPearson(0, 7, DefaultConfidence).High, 1e-12)
	require.InDelta(t, math.Pow(0.025, 1.0/7), ClopperPearson(7, 7, DefaultConfidence).Low, 1e-12)
}

// binomialBelow returns the probability of at most k passes, added up.
func binomialBelow(n, k int, p float64) float64 {
	from, weights := binomial(n, p)
	sum := 0.0
	for i, w := range weights {
		if from+i <= k {
			sum += w
		}
	}
	return sum
}

func TestClopperPearsonProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		passed := rapid.IntRange(0, n).Draw(t, "passed")
		confidence := rapid.Float64Range(0.01, 0.999).Draw(t, "confidence")
		rate := float64(passed) / float64(n)

		i := ClopperPearson(passed, n, confidence)
		require.True(t, 0 <= i.Low && i.Low <= rate && rate <= i.High && i.High <= 1, "%v around %v", i, rate)

		mirror := ClopperPearson(n-passed, n, confidence)
		require.InDelta(t, 1-mirror.High, i.Low, 1e-9)

		more := ClopperPearson(2*passed, 2*n, confidence)
		require.LessOrEqual(t, more.High-more.Low, i.High-i.Low+1e-9, "more trials must not widen it")

		surer := ClopperPearson(passed, n, (1+confidence)/2)
		require.GreaterOrEqual(t, surer.High-surer.Low, i.High-i.Low-1e-9)
	})
}

// A rate of 0 or 1 must keep its end of the interval exactly. Otherwise a report shows
// "99.99999999 %".
func TestClopperPearsonEndsAreExact(t *testing.T) {
	t.Parallel()
	for n := 1; n < 2000; n++ {
		require.Zero(t, ClopperPearson(0, n, DefaultConfidence).Low)
		require.Equal(t, 1.0, ClopperPearson(n, n, DefaultConfidence).High)
	}
}

// Adding up all outcomes, no limit is on the wrong side of the rate in more than 2.5 % of cases.
// Wilson's interval contained rates near 0 and 1 in 83 %.
func TestClopperPearsonCovers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5, 10, 20, 50, 200} {
		intervals := make([]record.Interval, n+1)
		for k := range intervals {
			intervals[k] = ClopperPearson(k, n, DefaultConfidence)
		}
		for p := 0.001; p < 1; p += 0.001 {
			requireTails(t, p, func(miss func(i record.Interval, weight float64)) {
				from, weights := binomial(n, p)
				for i, w := range weights {
					miss(intervals[from+i], w)
				}
			}, 0.025, "%d trials at %g", n, p)
		}
	}
}

// requireTails adds up the probabilities of intervals that are above and below the true value.
func requireTails(
	t *testing.T, truth float64, outcomes func(miss func(i record.Interval, weight float64)), most float64,
	format string, args ...any,
) {
	t.Helper()
	above, below := 0.0, 0.0
	outcomes(func(i record.Interval, weight float64) {
		switch {
		case i.Low > truth+1e-9:
			above += weight
		case i.High < truth-1e-9:
			below += weight
		}
	})
	if above > most+1e-9 || below > most+1e-9 {
		require.Failf(t, "a limit is wrong too often", format+": above %.4f, below %.4f", append(args, above, below)...)
	}
}
