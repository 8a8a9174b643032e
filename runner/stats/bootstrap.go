package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// DefaultSeed is the seed of the intervals that waza reports. It is fixed, so
// that a report of the same trials never differs from the last one.
const DefaultSeed = 1

const (
	// resamples is how many means the bootstrap draws.
	resamples = 1000
	// tail is how many of the resampled means lie outside the interval on
	// each side, which makes it one of 95 %.
	tail = resamples * 25 / 1000
	// maxResampled is the number of values up to which the bootstrap is worth
	// its thousand draws per value. Beyond it the mean's distribution is
	// normal to within what the resampling itself is off by.
	maxResampled = 2000
)

// Bootstrap returns the 95 % interval of the mean of values, in any order, by
// the percentile bootstrap (Efron and Tibshirani 1993, "An Introduction to the
// Bootstrap", ch. 13) with 1,000 resamples. The same values and seed give the
// same interval. Above 2,000 values it is the normal approximation, mean ± 1.96
// standard errors, held within the values' range, and the seed is of no account.
//
// Equal values, and a single one, give the interval that is that value; none
// give the zero interval. What is left out or cut is as in [Describe].
//
// Up to 2,000 values it costs a thousand draws each, which is a few microseconds;
// beyond that the sorting, about a hundred nanoseconds each; and nothing is
// drawn where all values are equal, as scores mostly are.
func Bootstrap(values []float64, seed uint64) Interval {
	return bootstrapSorted(sortedCopy(values), seed)
}

func bootstrapSorted(sorted []float64, seed uint64) Interval {
	n := len(sorted)
	switch {
	case n == 0:
		return Interval{}
	case sorted[0] == sorted[n-1]:
		return Interval{Low: sorted[0], High: sorted[0]}
	case n > maxResampled:
		return normalInterval(sorted)
	}
	// A PCG's numbers follow from its definition alone, on every machine.
	pcg := rand.NewPCG(seed, seed)
	means := make([]float64, resamples)
	for i := range means {
		means[i] = resampledMean(sorted, pcg)
	}
	slices.Sort(means)
	return Interval{
		Low:  clamp(means[tail-1], sorted[0], sorted[n-1]),
		High: clamp(means[resamples-tail], sorted[0], sorted[n-1]),
	}
}

// resampledMean returns the mean of as many values as there are, drawn with
// return. Each 64-bit number gives two draws of 32 bits, scaled down to an index
// by a multiplication; for n ≤ 2,000 no value is favoured by more than n/2³².
func resampledMean(values []float64, pcg *rand.PCG) float64 {
	n := uint64(len(values))
	sum := 0.0
	for i := uint64(0); i < n; i += 2 {
		bits := pcg.Uint64()
		sum += values[(bits>>32)*n>>32]
		if i+1 < n {
			sum += values[(bits&math.MaxUint32)*n>>32]
		}
	}
	return sum / float64(n)
}

func normalInterval(sorted []float64) Interval {
	n := len(sorted)
	m := mean(sorted)
	half := float64(z95 * (stdDev(sorted, m) / math.Sqrt(float64(n))))
	return Interval{
		Low:  clamp(m-half, sorted[0], m),
		High: clamp(m+half, m, sorted[n-1]),
	}
}
