package results

import (
	"math"
	"math/rand/v2"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// bootstraps is the number of resamples that the format prescribes.
const bootstraps = 10_000

// bootstrapped returns the percentile bootstrap of the mean of scores, as the format defines it.
// Only this format uses it, because it draws only observed scores; all other reports of waza use
// intervals of [stats.MeanInterval]. The draws always start with the same seed, so that the same
// run gives the same file.
func bootstrapped(scores []float64) *resultsInterval {
	d := stats.Describe(scores)
	in := &resultsInterval{Lower: d.Mean, Upper: d.Mean, Mean: d.Mean, ConfidenceLevel: stats.DefaultConfidence, NumBootstraps: bootstraps}
	if d.N < 2 || d.Min == d.Max {
		return in
	}
	draw := rand.New(rand.NewPCG(uint64(d.N), 0x7761_7a61))
	means := make([]float64, bootstraps)
	for i := range means {
		sum := 0.0
		for range scores {
			sum += scores[draw.IntN(len(scores))]
		}
		means[i] = sum / float64(len(scores))
	}
	slices.Sort(means)
	in.Lower, in.Upper = means[bootstraps*25/1000], means[bootstraps*975/1000]
	return in
}

// excludesZero reports whether the interval is significant in the sense of the format.
func (i *resultsInterval) excludesZero() bool { return i.Lower > 0 || i.Upper < 0 }

// populationStdDev returns the standard deviation with the divisor n, which the format
// prescribes. All other reports of waza divide by n-1.
func populationStdDev(d record.Distribution) float64 {
	if d.N < 2 {
		return 0
	}
	return d.StdDev * math.Sqrt(float64(d.N-1)/float64(d.N))
}
