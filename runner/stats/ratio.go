package stats

import (
	"math"
	"waza/runner/record"
)

// Amounts holds the time, tokens or money of the trials of one task in two runs.
type Amounts struct{ A, B []float64 }

// RatioInterval returns the interval of a ratio: the mean over tasks of the amounts in B,
// divided by that in A. It is Student's t interval of the ratio's logarithm. The variance comes
// from the variation between the trials of each task (the delta method), with the degrees of
// freedom of Welch and Satterthwaite. The interval is about exactly these tasks.
//
// ok is false if a task has fewer than two trials on one side, if nothing varies, or if a mean
// is not positive. With few trials of amounts that vary by multiples, the coverage is below the
// confidence, see docs/statistics.md.
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

// An amount is a mean over tasks with its variance. fourth is the sum of the tasks' squared
// variances divided by their degrees of freedom, which the formula of Welch and Satterthwaite
// needs.
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
