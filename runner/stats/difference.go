package stats

import (
	"math"
	"slices"
	"sync"

	"waza/runner/record"
)

// A PartPair is one task in two runs, or with and without skills.
type PartPair struct{ A, B Part }

// Difference estimates the mean of B minus the mean of A, over the tasks that have values on
// both sides. It is about exactly these tasks. ok is false without such tasks.
//
// The interval melds those of both means (Fay, Proschan and Brittain 2015, "Combining One-Sample
// Confidence Procedures for Inference in the Two-Sample Case"). Each limit is on the wrong side
// of the true difference with a probability of at most (1 - confidence) / 2. The tests count that
// for small designs, and docs/statistics.md has measurements of large ones. For the pass rates of
// one task it excludes 0 exactly if [Fisher]'s test has a p-value of at most 1 - confidence.
//
// The method of variance estimates recovery (Zou and Donner 2008; Newcombe 1998) is not an
// alternative. It adds the squares of distances to limits. For one trial on each side, a limit
// is wrong in 10 % of cases.
//
// Tasks differ, and that says nothing about their change. For several tasks, the variance of the
// difference is therefore estimated within tasks. Tasks with one value on a side have no such
// variance, and their differences are compared with each other. [unseen] more values at the far
// end are added, as in [MeanOver]. If the estimate is below the largest possible variance, the
// effective numbers of values of both means are multiplied by the ratio.
func Difference(pairs []PartPair, confidence float64) (e Estimate, ok bool) {
	var as, bs []Part
	var common []PartPair
	for _, p := range pairs {
		if p.A.N > 0 && p.B.N > 0 {
			as, bs, common = append(as, p.A), append(bs, p.B), append(common, p)
		}
	}
	a, okA := meanOf(as)
	b, okB := meanOf(bs)
	if !okA || !okB {
		return Estimate{}, false
	}
	variance, bound := within(common), a.bound()+b.bound()
	rare := a.rareWith(b)
	fall, rise := gain(bound, variance, rare, max(b.down(), a.up())), gain(bound, variance, rare, max(b.up(), a.down()))
	value := b.mean - a.mean
	tail := (1 - saneConfidence(confidence)) / 2
	b.gainLow, a.gainHigh = fall, fall
	low := meld(b.low, a.high, value, tail)
	b.gainHigh, a.gainLow = rise, rise
	high := -meld(a.low, b.high, -value, tail)
	return Estimate{value, record.Interval{Low: low, High: high}}, true
}

// rateDifferences caches [DifferenceOfRates]. Melding takes half a millisecond, and the tasks of a
// comparison have few different numbers of passes.
var rateDifferences rateDifferenceCache

// maxRateDifferences is the maximum number of cached differences: less than 1 MB.
const maxRateDifferences = 8192

type rateDifferenceCache struct {
	mu    sync.Mutex // guards known
	known map[rateDifference]Estimate
}

type rateDifference struct {
	a, b       Share
	confidence float64
}

// DifferenceOfRates is [Difference] for the pass rates of a single task in two runs. ok is false
// if a run has no trials.
func DifferenceOfRates(a, b Share, confidence float64) (e Estimate, ok bool) {
	key := rateDifference{a.sane(), b.sane(), confidence}
	if e, ok = rateDifferences.get(key); ok {
		return e, true
	}
	if e, ok = Difference([]PartPair{{A: RatePart(a), B: RatePart(b)}}, confidence); ok {
		rateDifferences.put(key, e)
	}
	return e, ok
}

func (c *rateDifferenceCache) get(key rateDifference) (e Estimate, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok = c.known[key]
	return e, ok
}

func (c *rateDifferenceCache) put(key rateDifference, e Estimate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxRateDifferences {
		c.known = map[rateDifference]Estimate{}
	}
	c.known[key] = e
}

// within estimates the variance of the mean difference from the values within tasks. Tasks with
// one value on a side are compared with each other.
func within(pairs []PartPair) float64 {
	weights := 0.0
	for _, p := range pairs {
		weights += p.A.weight()
	}
	sums := make([]float64, 0, len(pairs))
	var single, differences []float64
	for _, p := range pairs {
		share := p.A.weight() / weights
		a, b := p.A, p.B
		if a.N > 1 && b.N > 1 {
			v := float64(a.StdDev*a.StdDev)/float64(a.N) + float64(b.StdDev*b.StdDev)/float64(b.N)
			sums = append(sums, float64(float64(share*share)*v))
			continue
		}
		single = append(single, share)
		differences = append(differences, b.Mean-a.Mean)
	}
	if len(single) == 1 {
		return math.Inf(1)
	}
	center := 0.0
	if len(single) > 0 {
		center = mean(sortedCopy(differences))
	}
	for i, share := range single {
		d := differences[i] - center
		sums = append(sums, float64(float64(share*share)*float64(d*d))*float64(len(single))/float64(len(single)-1))
	}
	return sumOf(sortedCopy(sums))
}

// rareWith is [partsMean.rare] of the values on both sides.
func (m *partsMean) rareWith(other *partsMean) float64 {
	both := &partsMean{heaviest: max(m.heaviest, other.heaviest)}
	both.groups = grouped(slices.Concat(m.groups, other.groups))
	return both.rare()
}

// DifferenceOfSamples is [Difference] for the pass rates of a task that could stop early in at
// least one of two runs. It melds their intervals, see [Sample.Interval].
func DifferenceOfSamples(a, b *Sample, confidence float64) Estimate {
	value := b.Share().Rate() - a.Share().Rate()
	tail := (1 - saneConfidence(confidence)) / 2
	lowA, highA, okA := a.limits()
	lowB, highB, okB := b.limits()
	if !okA || !okB {
		// A confidence sequence has no distribution to meld. Each interval gets half of the
		// probability of error, so the limits of the difference keep theirs.
		half := 1 - tail
		ia, ib := a.Interval(half), b.Interval(half)
		return Estimate{value, record.Interval{Low: ib.Low - ia.High, High: ib.High - ia.Low}.Including(value)}
	}
	return Estimate{value, record.Interval{Low: meld(lowB, highA, value, tail), High: -meld(lowA, highB, -value, tail)}}
}

const (
	// meldCells is the number of cells into which the narrower distribution is divided.
	meldCells = 100
	// meldTail is the share of the distribution beyond the cells on each side.
	meldTail = 1e-7
)

// meld returns the lower limit of a difference b - a. low and high are the confidence
// distributions of the lower limit of b and the upper limit of a: functions of a rate that rise
// from 0 to 1. The limit is the quantile tail of the difference of two independent numbers with
// these distributions. It is at most value, the observed difference.
func meld(low, high func(p float64) float64, value, tail float64) float64 {
	b, a := supportOf(low), supportOf(high)
	if a.to-a.from <= b.to-b.from {
		c := a.cells(high)
		return root(func(d float64) float64 {
			return c.mean(func(p float64) float64 { return low(p + d) }) - tail
		}, -1, value)
	}
	c := b.cells(low)
	return root(func(d float64) float64 {
		return c.mean(func(p float64) float64 { return 1 - high(p-d) }) - tail
	}, -1, value)
}

// A support is the range of nearly all of a distribution.
type support struct{ from, to float64 }

func supportOf(distribution func(p float64) float64) support {
	const steps = 20
	from := 1 - nearly(steps, 0, 1, func(p float64) bool { return distribution(1-p) <= meldTail })
	return support{from, nearly(steps, from, 1, func(p float64) bool { return distribution(p) >= 1-meldTail })}
}

// cells is a distribution in cells of equal width: their centers and probabilities.
type cells struct{ points, masses []float64 }

func (s support) cells(distribution func(p float64) float64) *cells {
	c := &cells{}
	width := (s.to - s.from) / meldCells
	below := distribution(s.from)
	c.add(s.from, below)
	for i := range meldCells {
		edge := s.from + float64(width*float64(i+1))
		if i == meldCells-1 {
			edge = s.to
		}
		next := max(below, distribution(edge))
		c.add(edge-width/2, next-below)
		below = next
	}
	c.add(s.to, 1-below)
	return c
}

func (c *cells) add(point, mass float64) {
	if mass > 0 {
		c.points, c.masses = append(c.points, point), append(c.masses, mass)
	}
}

// mean returns the mean of a function of the distributed number.
func (c *cells) mean(f func(p float64) float64) float64 {
	sum := 0.0
	for i, p := range c.points {
		sum += float64(c.masses[i] * f(p))
	}
	return sum
}

// root returns where a rising function is 0 between two numbers, by the method of false position
// with the correction named Illinois. It returns an end if the function has no zero.
func root(f func(float64) float64, low, high float64) float64 {
	below, above := f(low), f(high)
	switch {
	case below >= 0:
		return low
	case above <= 0:
		return high
	}
	for last := 0; high-low > 1e-10; {
		x := (float64(low*above) - float64(high*below)) / (above - below)
		if !(x > low && x < high) {
			x = (low + high) / 2
		}
		switch y := f(x); {
		case math.Abs(y) < 1e-13:
			return x
		case y < 0:
			low, below = x, y
			if last < 0 {
				above /= 2
			}
			last = -1
		default:
			high, above = x, y
			if last > 0 {
				below /= 2
			}
			last = 1
		}
	}
	return (low + high) / 2
}
