package stats

import (
	"cmp"
	"math"
	"slices"
)

// outside is the largest probability that the rate under test is outside of the range that
// [Samples] searches. It is added to the p-value.
const outside = 1e-6

// Samples tests whether two tasks have the same pass rate if at least one of them could stop
// early. [Fisher]'s test is not valid for them: it assumes fixed numbers of trials, but these
// depend on the outcomes.
//
// It is an unconditional test, like Barnard's (1947, "Significance Tests for 2×2 Tables"). For
// each rate p that both tasks can have, enumerating all possible outcomes of both gives the
// exact probability of a difference at least as large as the observed one, in that direction.
// The p-value is twice the largest of these probabilities. Differences are those of the arcsine
// transform of Anscombe (1948), whose spread hardly depends on p. The test searches the rates
// that both samples allow (Berger and Boos 1994, "P Values Maximized Over a Confidence Set for
// the Nuisance Parameter"), on a grid whose best points are refined.
//
// If trials pass independently with the same probability, and no further trials would have been
// in error, a false alarm at level α has a probability of at most α.
//
// ok is false for samples of more than 1,000 trials, which are not tested.
func Samples(a, b *Sample) (e Exact, ok bool) {
	if a.lastTrial() > maxPaths || b.lastTrial() > maxPaths {
		return Exact{P: 1, least: 1}, false
	}
	if a.n == 0 || b.n == 0 {
		return Exact{P: 1, least: 1}, true
	}
	t := samplesTest{a: a.outcomes(), b: b.outcomes()}
	seen := transformed(b.n, b.passed) - transformed(a.n, a.passed)
	e = Exact{P: 1, Better: seen > 0, least: t.least()}
	if math.Abs(seen) < tied {
		return e, true
	}
	// The common rate can only be where neither interval excludes it.
	ia, ib := a.Interval(1-outside/2), b.Interval(1-outside/2)
	e.P = t.p(seen, max(ia.Low, ib.Low), min(ia.High, ib.High))
	return e, true
}

// tied is the largest difference by rounding of equal differences.
const tied = 1e-9

// lastTrial returns the number of counted trials after which the sample had to stop. For a sample
// that was cut short, it is the number of its trials.
func (s *Sample) lastTrial() int {
	if s.sequential() && s.decision != Undecided {
		return s.Counting()
	}
	return s.n
}

// A samplesTest holds the possible outcomes of both samples, by rising rate.
type samplesTest struct{ a, b []outcome }

// An outcome is a place where trials can stop, with its place on the scale of rates.
type outcome struct {
	n, passed, failed float64
	logWays, scale    float64
}

// probability returns the probability of the outcome. The arguments are the logarithms of the
// probabilities that a trial passes and fails.
func (o *outcome) probability(logPass, logFail float64) float64 {
	return math.Exp(o.logWays + float64(o.passed*logPass) + float64(o.failed*logFail))
}

func (s *Sample) outcomes() []outcome {
	var list []outcome
	for _, at := range s.paths(s.lastTrial()) {
		list = append(list, outcome{
			float64(at.n), float64(at.passed), float64(at.n - at.passed), math.Log(at.ways),
			transformed(at.n, at.passed),
		})
	}
	slices.SortFunc(list, func(x, y outcome) int { return cmp.Compare(x.scale, y.scale) })
	return list
}

// transformed returns Anscombe's arcsine transform of a share.
func transformed(n, passed int) float64 {
	return 2 * math.Asin(math.Sqrt((float64(passed)+0.375)/(float64(n)+0.75)))
}

// p returns the p-value of a difference if the rate is from low to high.
func (t *samplesTest) p(seen, low, high float64) float64 {
	if low > high {
		return 2 * outside // one of the two intervals excludes the rate
	}
	from, to := math.Asin(math.Sqrt(low)), math.Asin(math.Sqrt(high))
	trials := 0.0
	for _, o := range slices.Concat(t.a, t.b) {
		trials = max(trials, 2*o.n)
	}
	steps := 8 + int(4*(to-from)*math.Sqrt(trials))
	at := func(i float64) float64 { // not 0 or 1, whose logarithms are infinite
		return clamp(math.Pow(math.Sin(from+float64((to-from)*i)), 2), 1e-12, 1-1e-12)
	}
	best, where := 0.0, 0
	for i := range steps + 1 {
		if tail := t.tail(seen, at(float64(i)/float64(steps))); tail > best {
			best, where = tail, i
		}
	}
	// Golden-section search between the neighbors of the best point.
	const golden = 0.6180339887498949
	left, right := max(0, float64(where-1)/float64(steps)), min(1, float64(where+1)/float64(steps))
	for range 20 {
		x, y := right-golden*(right-left), left+golden*(right-left)
		tx, ty := t.tail(seen, at(x)), t.tail(seen, at(y))
		best = max(best, tx, ty)
		if tx > ty {
			right = y
		} else {
			left = x
		}
	}
	return min(1, 2*(best+outside))
}

// tail returns the probability of a difference at least as large as seen, in its direction, if
// both samples pass at the rate p.
func (t *samplesTest) tail(seen, p float64) float64 {
	lower, higher := t.a, t.b // the difference is higher minus lower
	if seen < 0 {
		lower, higher, seen = t.b, t.a, -seen
	}
	logPass, logFail := math.Log(p), math.Log1p(-p)
	sum, above := 0.0, 0.0 // above is the probability that the higher sample is far enough up
	next := len(higher) - 1
	for i := len(lower) - 1; i >= 0; i-- {
		for next >= 0 && higher[next].scale >= lower[i].scale+seen-tied {
			above += higher[next].probability(logPass, logFail)
			next--
		}
		if above > 0 {
			sum += float64(above * lower[i].probability(logPass, logFail))
		}
	}
	return sum
}

// least returns the smallest possible p-value.
func (t *samplesTest) least() float64 {
	up := t.b[len(t.b)-1].scale - t.a[0].scale
	down := t.b[0].scale - t.a[len(t.a)-1].scale
	return min(t.p(up, 0, 1), t.p(down, 0, 1))
}
