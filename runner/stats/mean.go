package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"waza/runner/record"
)

// An Estimate is a number with the interval that contains the true value. The value is within
// the interval.
type Estimate struct {
	Value    float64
	Interval record.Interval
}

// A Part is one task in a mean over tasks: a description of its values, which are between 0 and
// 1, such as the scores of its trials. The values are independent, and those of one part have
// the same mean. A part without values is omitted.
type Part struct {
	record.Distribution
	// Weight is the task's weight. 0 means 1, so parts without weights have equal ones.
	Weight float64
}

func (p Part) weight() float64 {
	if p.Weight == 0 {
		return 1
	}
	return p.Weight
}

// PartOf describes the values of a task, in any order. Values beyond 0 and 1 count as those; NaN
// and infinities are omitted.
func PartOf(values []float64) Part {
	sorted := sortedCopy(values)
	for i, v := range sorted {
		sorted[i] = clamp(v, 0, 1)
	}
	return Part{Distribution: describeSorted(sorted)}
}

// RatePart describes trials that count 1 if they passed, else 0.
func RatePart(s Share) Part {
	if s = s.sane(); s.N == 0 {
		return Part{}
	}
	d := record.Distribution{N: s.N, Mean: s.Rate()}
	if s.Passed == s.N {
		d.Min = 1
	}
	if s.Passed > 0 {
		d.Max = 1
	}
	if s.N > 1 {
		d.StdDev = math.Sqrt(float64(d.Mean*(1-d.Mean)) * float64(s.N) / float64(s.N-1))
	}
	return Part{Distribution: d}
}

// MeanInterval returns the interval of the mean of values from 0 to 1, such as scores, given
// some of them in any order, see [MeanOver]. Without values it is 0 to 1.
//
// The bootstrap is not an alternative, because it draws only observed values: from three passes
// it concludes that nothing ever fails.
func MeanInterval(values []float64, confidence float64) record.Interval {
	e, ok := MeanOver([]Part{PartOf(values)}, confidence)
	if !ok {
		return record.Interval{Low: 0, High: 1}
	}
	return e.Interval
}

// MeanOver estimates the weighted mean of the tasks' means. It is about exactly these tasks, not
// about similar ones. ok is false if no part has a value.
//
// For values of 0 and 1 that have equal weights, the interval is [ClopperPearson]'s. It is
// extended in three ways, each with an effective number of values in the place of their number
// (Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
// positive counts estimated from survey data"):
//
//   - Values between 0 and 1 vary less than values of 0 and 1 with the same mean. Their number is
//     multiplied by the ratio of both variances. The observed variance gets the contribution of
//     [unseen] more values at the far end, because rare values may not have occurred.
//   - If values have different weights, because tasks have different numbers of trials, the
//     number is that of the largest possible variance: the one of the rates with the given mean
//     that are worst. The number of Kish (1965), (Σw)²/Σw², assumes equal rates and is too large.
//   - Where Clopper and Pearson allow for one more pass or failure, the mean is moved by the
//     largest weight of a value.
//
// docs/statistics.md has measurements for many designs.
func MeanOver(parts []Part, confidence float64) (e Estimate, ok bool) {
	m, ok := meanOf(parts)
	if !ok {
		return Estimate{}, false
	}
	m.adapt(m.spread())
	tail := (1 - saneConfidence(confidence)) / 2
	return Estimate{m.mean, record.Interval{
		Low:  where(0, m.mean, func(p float64) bool { return m.low(p) > tail }),
		High: where(m.mean, 1, func(p float64) bool { return m.high(p) >= 1-tail }),
	}}, true
}

// unseen is the number of values that the observed variance is extended by. Values that occur
// 3.7 times on average are absent in 2.5 % of cases, for which 1.96·√4 = 3.9 suffices. Values that
// occur seven times or more, but not often enough to follow the normal distribution, need 6.
const unseen = 6

// A partsMean is the mean over parts, with everything that its uncertainty depends on.
type partsMean struct {
	parts []weighed
	// groups holds the parts by rising weight of their values; parts of equal weights are merged.
	groups []weighed
	mean   float64
	least  float64 // the least value
	most   float64 // the largest value
	// heaviest is the largest weight of a value.
	heaviest float64
	// equal is the number of values if all have the same weight, else 0.
	equal float64
	// gainLow and gainHigh are the factors of the effective numbers of values for the lower and
	// the upper limit: 1 unless the values vary less than the worst ones.
	gainLow, gainHigh float64
}

// A weighed is a part with its share of the mean, and with the weight of each of its values.
type weighed struct {
	record.Distribution
	share, each float64
}

func meanOf(parts []Part) (*partsMean, bool) {
	m := &partsMean{gainLow: 1, gainHigh: 1, least: 1}
	total, n := 0.0, 0
	for _, p := range parts {
		if p.N <= 0 || p.Weight < 0 {
			continue
		}
		w := weighed{Distribution: p.Distribution, share: p.weight()}
		w.Mean = clamp(w.Mean, 0, 1)
		m.parts = append(m.parts, w)
		m.least, m.most = min(m.least, clamp(p.Min, 0, 1)), max(m.most, clamp(p.Max, 0, 1))
		total += w.share
		n += p.N
	}
	if len(m.parts) == 0 {
		return nil, false
	}
	// Sorted parts give the same sums in any order.
	slices.SortFunc(m.parts, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.N, b.N), cmp.Compare(a.share, b.share), cmp.Compare(a.StdDev, b.StdDev))
	})
	lightest, list := math.Inf(1), make([]float64, len(m.parts))
	for i := range m.parts {
		w := &m.parts[i]
		list[i] = float64(w.Mean * w.share)
		w.share /= total
		w.each = w.share / float64(w.N)
		m.heaviest, lightest = max(m.heaviest, w.each), min(lightest, w.each)
	}
	slices.Sort(list)
	m.mean = mean(list)
	if count := float64(len(list)); total != count { // multiplying and dividing by the same number can round
		m.mean = float64(m.mean*count) / total
	}
	m.mean = clamp(m.mean, m.parts[0].Mean, m.parts[len(m.parts)-1].Mean)
	if m.heaviest-lightest <= 1e-9*m.heaviest {
		m.equal = float64(n)
	}
	m.groups = grouped(m.parts)
	return m, true
}

// grouped merges the shares of parts whose values have the same weight.
func grouped(parts []weighed) []weighed {
	sorted := slices.Clone(parts)
	slices.SortStableFunc(sorted, func(a, b weighed) int { return cmp.Compare(a.each, b.each) })
	groups := sorted[:0]
	for _, w := range sorted {
		if n := len(groups); n > 0 && w.each <= groups[n-1].each*(1+1e-12) {
			groups[n-1].share += w.share
			groups[n-1].N += w.N
			continue
		}
		groups = append(groups, w)
	}
	return groups
}

// worst returns the effective number of values of a mean p if all values are 0 or 1, for the
// means of parts that have the largest variance:
//
//	p(1-p) / max Σ share²·pᵢ(1-pᵢ)/n   for all pᵢ with the mean p
//
// The largest variance has pᵢ = (1 - λ/each)/2, and 0 where that is negative.
func (m *partsMean) worst(p float64) float64 {
	if m.equal > 0 {
		return m.equal
	}
	if p > 0.5 {
		p = 1 - p
	}
	if p <= 0 {
		return 1 / m.heaviest
	}
	at := func(lambda float64) (mean, variance float64) {
		for _, w := range m.groups {
			if q := (1 - lambda/w.each) / 2; q > 0 {
				mean += float64(w.share * q)
				variance += float64(w.share*w.each) * float64(q*(1-q))
			}
		}
		return mean, variance
	}
	low, high := 0.0, m.heaviest
	for range 40 {
		lambda := (low + high) / 2
		if mean, _ := at(lambda); mean > p {
			low = lambda
		} else {
			high = lambda
		}
	}
	mean, variance := at(low)
	if !(variance > 0) {
		return 1 / m.heaviest
	}
	return max(1/m.heaviest, float64(mean*(1-mean))/variance)
}

// bound returns the largest possible variance of the mean, if it has the observed value.
func (m *partsMean) bound() float64 { return float64(m.mean*(1-m.mean)) / m.worst(m.mean) }

// spread estimates the variance of the mean from all values together. The differences between
// parts are included, so on average the estimate is not too small.
func (m *partsMean) spread() float64 {
	sum, n := 0.0, 0.0
	for _, w := range m.parts {
		k := float64(w.N)
		n += k
		d := w.Mean - m.mean
		sum += float64(float64(w.each*w.each) * (float64((k-1)*float64(w.StdDev*w.StdDev)) + float64(k*float64(d*d))))
	}
	if n < 2 {
		return math.Inf(1)
	}
	return sum * n / (n - 1)
}

// rare returns the sum of the squares of the largest weights of [unseen] values.
func (m *partsMean) rare() float64 {
	sum, left := 0.0, float64(unseen)
	for _, w := range slices.Backward(m.groups) {
		k := min(left, float64(w.N))
		sum += float64(k * float64(w.each*w.each))
		if left -= k; left <= 0 {
			return sum
		}
	}
	return sum + float64(left*float64(m.heaviest*m.heaviest))
}

// down and up are the farthest distances of a value that may not have occurred from the
// observed ones.
func (m *partsMean) down() float64 { return m.most }
func (m *partsMean) up() float64   { return 1 - m.least }

// adapt sets the factors from the estimated variance.
func (m *partsMean) adapt(variance float64) {
	bound, rare := m.bound(), m.rare()
	m.gainLow, m.gainHigh = gain(bound, variance, rare, m.down()), gain(bound, variance, rare, m.up())
}

// gain returns the factor of an effective number of values: the largest possible variance divided
// by the estimated one, and at least 1. The latter gets the contribution of [unseen] values at the
// distance reach; rare is the sum of the squares of their weights.
func gain(bound, variance, rare, reach float64) float64 {
	v := variance + float64(rare*float64(reach*reach))
	if !(v < bound) {
		return 1
	}
	return bound / v
}

// low returns the probability of the observed mean or a higher one if p is the true mean. It
// rises with p.
func (m *partsMean) low(p float64) float64 {
	n := m.worst(p) * m.gainLow
	return betaBelow(float64(n*m.mean), float64(n*(1-m.mean))+max(1, float64(n*m.heaviest)*m.down()), p)
}

// high returns 1 minus the probability of the observed mean or a lower one if p is the true
// mean. It rises with p, too.
func (m *partsMean) high(p float64) float64 {
	n := m.worst(p) * m.gainHigh
	return betaBelow(float64(n*m.mean)+max(1, float64(n*m.heaviest)*m.up()), float64(n*(1-m.mean)), p)
}

// betaBelow returns the share of a beta distribution at p or below. A distribution without a or
// b is concentrated at 0 or 1.
func betaBelow(a, b, p float64) float64 {
	switch {
	case p < 0:
		return 0
	case p >= 1 || a <= 0:
		return 1
	case p == 0 || b <= 0:
		return 0
	}
	return mathext.RegIncBeta(a, b, p)
}

// where returns the smallest number between low and high at which a condition holds. The
// condition must hold from some number on; if it holds nowhere, where returns high.
func where(low, high float64, holds func(p float64) bool) float64 {
	return nearly(50, low, high, holds)
}

// nearly is like [where], but returns a number that is too large by up to 2^-steps of the range.
func nearly(steps int, low, high float64, holds func(p float64) bool) float64 {
	if holds(low) {
		return low
	}
	for range steps {
		if p := (low + high) / 2; holds(p) {
			high = p
		} else {
			low = p
		}
	}
	return high
}
