package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Means that are compared are drawn this often: more than for [Bootstrap], for
// there are few comparisons and other confidences.
const compareResamples = 4000

// BootstrapMean is [Bootstrap] with another confidence, one that is not between 0
// and 1 being taken as [DefaultConfidence], and with 4,000 resamples.
func BootstrapMean(values []float64, seed uint64, confidence float64) Interval {
	sorted := sortedCopy(values)
	if len(sorted) == 0 {
		return Interval{}
	}
	return resample(seed, confidence, func(pcg *rand.PCG) float64 { return resampledMean(sorted, pcg) })
}

// BootstrapDifference is the percentile bootstrap interval of b's mean less a's,
// two samples that have nothing in common. It is the zero interval where one is
// empty. What is left out or cut is as in [Describe].
func BootstrapDifference(a, b []float64, seed uint64, confidence float64) Interval {
	sa, sb := sortedCopy(a), sortedCopy(b)
	if len(sa) == 0 || len(sb) == 0 {
		return Interval{}
	}
	return resample(seed, confidence, func(pcg *rand.PCG) float64 {
		return resampledMean(sb, pcg) - resampledMean(sa, pcg)
	})
}

// BootstrapRatio is the percentile bootstrap interval of b's mean over a's, where
// a[i] and b[i] belong together and are drawn together. Their order counts. The
// values must be finite and not negative; ok is false for fewer than two pairs,
// and where a is 0 throughout a resample.
func BootstrapRatio(a, b []float64, seed uint64, confidence float64) (i Interval, ok bool) {
	n := min(len(a), len(b))
	if n < 2 {
		return Interval{}, false
	}
	i = resample(seed, confidence, func(pcg *rand.PCG) float64 {
		above, below := 0.0, 0.0
		for range n {
			j := (pcg.Uint64() >> 32) * uint64(n) >> 32
			above, below = above+b[j], below+a[j]
		}
		return above / below
	})
	return i, !math.IsNaN(i.Low) && !math.IsInf(i.High, 0)
}

// resample gives the interval of a statistic that is drawn anew each time.
func resample(seed uint64, confidence float64, draw func(*rand.PCG) float64) Interval {
	if !(confidence > 0 && confidence < 1) {
		confidence = DefaultConfidence
	}
	pcg := rand.NewPCG(seed, seed)
	drawn := make([]float64, compareResamples)
	for i := range drawn {
		drawn[i] = draw(pcg)
	}
	slices.Sort(drawn) // NaN first
	out := max(1, int(math.Round(compareResamples*(1-confidence)/2)))
	return Interval{Low: drawn[out-1], High: drawn[compareResamples-out]}
}
