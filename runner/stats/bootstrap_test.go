package stats

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// mice are the survival days of the treated mice in Efron and Tibshirani's
// table 2.1.
var mice = []float64{94, 197, 16, 38, 99, 141, 23}

// Of seven values there are 7^7 resamples, few enough to enumerate. The
// interval drawn must be near the one that all of them give.
func TestBootstrapNearsTheExactDistribution(t *testing.T) {
	t.Parallel()
	means := []float64{0}
	for range mice {
		next := make([]float64, 0, len(means)*len(mice))
		for _, sum := range means {
			for _, v := range mice {
				next = append(next, sum+v/float64(len(mice)))
			}
		}
		means = next
	}
	slices.Sort(means)
	low, high := means[len(means)*25/1000], means[len(means)*975/1000]

	for seed := range uint64(20) {
		got := Bootstrap(mice, seed)
		require.InDelta(t, low, got.Low, 7, "seed %d", seed)
		require.InDelta(t, high, got.High, 9, "seed %d", seed)
	}
}

// These numbers must never change, or reports of old and new programs differ.
func TestBootstrapIsPinned(t *testing.T) {
	t.Parallel()
	require.Equal(t, Interval{Low: 42.142857142857146, High: 135.57142857142858}, Bootstrap(mice, DefaultSeed))
	require.Equal(t, Interval{Low: 0.3, High: 1}, Bootstrap([]float64{0, 1, 1, 0.5, 1}, DefaultSeed))
	require.NotEqual(t, Bootstrap(mice, 1), Bootstrap(mice, 2), "the seed counts")
}

func TestBootstrapOfLittle(t *testing.T) {
	t.Parallel()
	require.Equal(t, Interval{}, Bootstrap(nil, 1))
	require.Equal(t, Interval{Low: 0.4, High: 0.4}, Bootstrap([]float64{0.4}, 1))
	require.Equal(t, Interval{Low: 0.1, High: 0.1}, Bootstrap([]float64{0.1, 0.1, 0.1}, 1))
}

// The interval must not jump where the bootstrap gives way to the normal
// approximation.
func TestBootstrapMeetsTheApproximation(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	values := make([]float64, maxResampled+1)
	for i := range values {
		values[i] = rng.Float64() * rng.Float64()
	}
	drawn, normal := Bootstrap(values[:maxResampled], 1), Bootstrap(values, 1)
	require.InDelta(t, drawn.Low, normal.Low, 0.002)
	require.InDelta(t, drawn.High, normal.High, 0.002)
	require.Less(t, normal.Low, normal.High)
	require.Equal(t, normal, Bootstrap(values, 2), "nothing is drawn above the limit")
}

// Of intervals of samples from a known distribution about 95 % must hold its mean.
func TestBootstrapCovers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	const experiments = 400
	held := 0
	for range experiments {
		values := make([]float64, 40)
		for i := range values {
			values[i] = rng.Float64()
		}
		if i := Bootstrap(values, DefaultSeed); i.Low <= 0.5 && 0.5 <= i.High {
			held++
		}
	}
	require.InDelta(t, 0.95, float64(held)/experiments, 0.035)
}

func BenchmarkBootstrap(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"10", 10}, {"2000", 2000}, {"100000", 100_000}} {
		b.Run(size.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			values := make([]float64, size.n)
			for i := range values {
				values[i] = rng.Float64()
			}
			for b.Loop() {
				Bootstrap(values, DefaultSeed)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.n), "ns/value")
		})
	}
}
