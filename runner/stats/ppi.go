package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"waza/runner/record"
)

// A LabelStratum holds the trials to which a judge gave the same verdict. People scored some of
// them, which were drawn at random.
type LabelStratum struct {
	// Trials is the number of the trials, with and without a person's score. It is at least the
	// number of labels.
	Trials int
	// Labels are the scores of people, 0 to 1. For a pass rate they are 1 for a pass, else 0.
	// Values beyond 0 and 1 count as those; NaN and infinities are omitted.
	Labels []float64
}

// leastLabels is the least number of labels of a stratum that [AllotLabels] draws.
const leastLabels = 2

// AllotLabels divides labels among strata with those numbers of trials: in proportion to them,
// but at least 2 to each stratum that has trials, if there are as many. No stratum gets more
// labels than it has trials.
func AllotLabels(trials []int, labels int) []int {
	total := 0
	for _, n := range trials {
		total += max(0, n)
	}
	labels = min(max(0, labels), total)
	allotted := make([]int, len(trials))
	given := 0
	for i, n := range trials { // the least numbers
		allotted[i] = min(max(0, n), leastLabels, labels-given)
		given += allotted[i]
	}
	for ; given < labels; given++ { // each label to the stratum that lacks most
		most, at := math.Inf(-1), -1
		for i, n := range trials {
			if allotted[i] >= n {
				continue
			}
			if lacks := float64(labels)*float64(n)/float64(total) - float64(allotted[i]); lacks > most {
				most, at = lacks, i
			}
		}
		allotted[at]++
	}
	return allotted
}

// CorrectedMean estimates the mean that people would give to the trials of an agent, from their
// scores of a random part of the trials and from a judge's verdicts of all of them. It is
// prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023,
// "Prediction-powered inference"). Verdicts have two values, so that the weight λ with the least
// variance (Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient prediction-powered inference")
// makes it the mean over strata:
//
//	θ = Σ (Nₕ/N)·ȳₕ       Nₕ of N trials have the verdict h; ȳₕ is the mean of their labels
//
// The interval is about the mean of all trials that the agent could make of these tasks, like
// the intervals of [ClopperPearson] and [MeanOver], and not only about the recorded ones. Its
// variance has two parts, the second for the verdicts of other trials:
//
//	v = Σ (Nₕ/N)²·sₕ²/nₕ + Σ (Nₕ/N)·(ȳₕ-θ)²/N
//
// The interval is that of Clopper and Pearson for θ(1-θ)/v values (Korn and Graubard 1998,
// "Confidence intervals for proportions with small expected number of positive counts estimated
// from survey data"), but at least for as many as there are labels. For v, each stratum gets two
// more labels, 0 and 1, because equal labels do not show that all trials are equal. Without
// them, and with the normal distribution of the sources, a judge without an observed error would
// have an interval without width.
//
// Trials of a task may be alike, because the labels are drawn from all trials, and because
// trials with different rates vary less than those with equal ones. docs/statistics.md has
// measurements. ok is false if a stratum has trials, but no label.
func CorrectedMean(strata []LabelStratum, confidence float64) (e Estimate, ok bool) {
	var parts []labeled
	total, labels := 0, 0
	for _, s := range strata {
		values := sortedCopy(s.Labels)
		trials := max(s.Trials, len(values))
		if trials == 0 {
			continue
		}
		if len(values) == 0 {
			return Estimate{}, false
		}
		total, labels = total+trials, labels+len(values)
		parts = append(parts, labeledOf(trials, values))
	}
	if total == 0 {
		return Estimate{}, false
	}
	means, smoothed := make([]float64, len(parts)), make([]float64, len(parts))
	for i, p := range parts {
		share := float64(p.trials) / float64(total)
		means[i], smoothed[i] = share*p.mean, share*p.smoothed
	}
	theta, around := clamp(sumSorted(means), 0, 1), sumSorted(smoothed)
	terms := make([]float64, 0, 2*len(parts))
	for _, p := range parts {
		share, d := float64(p.trials)/float64(total), p.smoothed-around
		terms = append(terms, share*share*p.variance/float64(p.n), share*d*d/float64(total))
	}
	n := max(float64(labels), float64(around*(1-around))/sumSorted(terms))
	tail := (1 - saneConfidence(confidence)) / 2
	return Estimate{theta, effectiveInterval(theta, n, tail)}, true
}

// A labeled describes the labels of a stratum.
type labeled struct {
	trials, n int
	mean      float64
	// smoothed and variance are the mean and the variance of the labels with one more 0 and 1.
	smoothed, variance float64
}

func labeledOf(trials int, sorted []float64) labeled {
	for i, v := range sorted {
		sorted[i] = clamp(v, 0, 1)
	}
	p := labeled{trials: trials, n: len(sorted), mean: mean(sorted)}
	more := slices.Concat([]float64{0}, sorted, []float64{1})
	p.smoothed = mean(more)
	squares := make([]float64, len(more))
	for i, v := range more {
		d := v - p.smoothed
		squares[i] = d * d
	}
	p.variance = sumSorted(squares) / float64(len(squares))
	return p
}

// sumSorted returns the sum of numbers, which it sorts.
func sumSorted(values []float64) float64 {
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}

// effectiveInterval returns the interval of Clopper and Pearson for a rate among n trials, which
// may be fractional. It contains the rate.
func effectiveInterval(rate, n, tail float64) record.Interval {
	i := record.Interval{Low: 0, High: 1}
	passed, failed := rate*n, (1-rate)*n
	if passed > 0 {
		i.Low = clamp(mathext.InvRegIncBeta(passed, failed+1, tail), 0, rate)
	}
	if failed > 0 {
		i.High = clamp(mathext.InvRegIncBeta(passed+1, failed, 1-tail), rate, 1)
	}
	return i
}
