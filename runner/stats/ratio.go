package stats

import (
	"math"
	"waza/runner/record"
)

// Amounts are what the trials of one task took in two runs: time, tokens or money.
type Amounts struct{ A, B []float64 }

// RatioInterval is the interval of a ratio: the mean over tasks of what trials take in
// B, over that in A. It is Student's t interval of the ratio's logarithm, whose
// variance comes from how the trials of each task vary (the delta method), with the
// degrees of freedom of Welch and Satterthwaite. It is about these tasks.
//
// ok is false where it cannot be said: where a task has fewer than two trials on
// one side, where nothing varies, or a mean is not positive. With few trials of
// amounts that vary by multiples it covers less than it says, see
// docs/statistics.md.
func RatioInterval(tasks []Amounts, confidence float64) (i record.Interval, ok bool) {
	a, okA := amountOf(tasks, func(t Amounts) []float64 { return t.A })
	b, okB := amountOf(tasks, func(t Amounts) []float64 { return t.B })
	if !okA || !okB {
		return record.Interval{}, false
	}
	va, vb := a.variance/float64(a.mean*a.mean), b.variance/float64(b.mean*b.mean)
	freedom := float64((va+vb)*(va+vb)) / (a.fourth/math.Pow(a.mean, 4) + b.fourth/math.Pow(b.mean, 4))
	half := studentQuantile(confidence, freedom) * math.Sqrt(va+vb)
	ratio := b.mean / a.mean
	i = record.Interval{Low: ratio * math.Exp(-half), High: ratio * math.Exp(half)}
	return i, va+vb > 0 && !math.IsInf(i.High, 0) && !math.IsNaN(i.High)
}

// amount is a mean over tasks with its variance. fourth is the sum of the squared
// variances of tasks over their degrees of freedom, as Welch and Satterthwaite want it.
type amount struct{ mean, variance, fourth float64 }

func amountOf(tasks []Amounts, of func(Amounts) []float64) (a amount, ok bool) {
	n := float64(len(tasks))
	for _, t := range tasks {
		s := Describe(of(t))
		if s.N < 2 {
			return amount{}, false
		}
		v := float64(s.StdDev*s.StdDev) / float64(s.N)
		a.mean += s.Mean / n
		a.variance += v / float64(n*n)
		a.fourth += float64(v*v) / math.Pow(n, 4) / float64(s.N-1)
	}
	return a, a.mean > 0
}
