package stats

import (
	"math"
	"sort"
)

// A design holds the parameters of a [Sequential] rule's boundaries. required is from 1 to
// trials.
type design struct {
	trials, required int
	alpha            float64
}

// bounds holds the boundaries of a rule by the number of ended trials. A task will pass if at
// least pass trials have passed, and fail if at most fail trials have passed.
type bounds struct{ pass, fail []int32 }

const (
	// away is the distance of the pass rate from the threshold at which a rule should need few
	// trials.
	away = 0.1
	// priorTrials is the weight of the prior in trials.
	priorTrials = 2
)

// calibrate finds the boundaries: a and b of [calibration.bounds] as x·r and x/r. It finds the
// best r by trying, and the largest x for each r by bisection. It searches with a coarse grid of
// pass rates, and verifies the result with a fine one.
func (d design) calibrate() *bounds {
	c := d.calibration()
	coarse, fine := c.ratesAround(3, 4), c.ratesAround(6, 16)
	threshold := float64(d.required) / float64(d.trials)
	var bestX, bestR float64
	fewest := math.Inf(1)
	for step := -4; step <= 4; step++ {
		r := math.Exp(float64(step) / 4)
		x := c.largest(r, coarse)
		b := c.bounds(x*r, x/r)
		_, below := c.errorAt(b, max(threshold-away, 0.001))
		_, above := c.errorAt(b, min(threshold+away, 0.999))
		if n := max(below, above); n < fewest {
			bestX, bestR, fewest = x, r, n
		}
	}
	for range 40 {
		if b := c.bounds(bestX*bestR, bestX/bestR); c.holds(b, fine) {
			return b
		}
		bestX *= 0.98
	}
	return c.bounds(0, 0)
}

// A calibration holds the state of calibrating one design.
type calibration struct {
	design
	// predicted holds, for each number of trials and of passes among them, the probability that
	// all trials lead to a pass.
	predicted [][]float64
	logFact   []float64 // logarithms of factorials
	alive     []float64 // see errorAt
}

func (d design) calibration() *calibration {
	c := &calibration{design: d, predicted: d.predict(), logFact: make([]float64, d.trials+1), alive: make([]float64, d.trials+2)}
	for n := range c.logFact {
		c.logFact[n] = logFactorial(n)
	}
	return c
}

// predict computes [calibration.predicted] backwards from the last trial. After all trials the
// verdict is known; before that, the next trial passes with the probability of the posterior
// mean.
func (d design) predict() [][]float64 {
	centre := (float64(d.required) - 0.5) / float64(d.trials)
	a, b := priorTrials*centre, priorTrials*(1-centre)
	t := make([][]float64, d.trials+1)
	for n := d.trials; n >= 0; n-- {
		t[n] = make([]float64, n+1)
		for s := range t[n] {
			if n == d.trials {
				if s >= d.required {
					t[n][s] = 1
				}
				continue
			}
			next := (a + float64(s)) / (a + b + float64(n))
			t[n][s] = float64(next*t[n+1][s+1]) + float64((1-next)*t[n+1][s])
		}
	}
	return t
}

// bounds returns the boundaries for the predictive probabilities 1 - a and b, including exact
// curtailment.
func (c *calibration) bounds(a, b float64) *bounds {
	out := &bounds{pass: make([]int32, c.trials+1), fail: make([]int32, c.trials+1)}
	out.pass[0], out.fail[0] = 1, -1
	for n := 1; n <= c.trials; n++ {
		t := c.predicted[n]
		pass := sort.Search(len(t), func(s int) bool { return s >= c.required || a > 0 && t[s] >= 1-a })
		fail := sort.Search(len(t), func(s int) bool { return s+c.trials-n >= c.required && !(t[s] <= b && b > 0) }) - 1
		out.pass[n], out.fail[n] = int32(pass), int32(fail)
	}
	return out
}

// largest returns the largest x for which the error is small enough at every rate.
func (c *calibration) largest(r float64, rates []float64) float64 {
	low, high := 0.0, 0.45*min(r, 1/r)
	for range 12 {
		if x := (low + high) / 2; c.holds(c.bounds(x*r, x/r), rates) {
			low = x
		} else {
			high = x
		}
	}
	return low
}

// holds reports whether the error is small enough at all rates. The factor 0.999 allows for
// larger errors between two of them.
func (c *calibration) holds(b *bounds, rates []float64) bool {
	for _, p := range rates {
		if wrong, _ := c.errorAt(b, p); wrong > c.alpha*0.999 {
			return false
		}
	}
	return true
}

// ratesAround returns pass rates around the rate at which all trials are equally likely to lead
// to a pass or not, because errors are most likely there. It covers that many standard errors to
// either side, in that many steps each. The nearest rates come first.
func (d design) ratesAround(errors, steps int) []float64 {
	n := float64(d.trials)
	centre := (float64(d.required) - 0.5) / n
	unit := max(math.Sqrt(centre*(1-centre)/n), 1/n) / float64(steps)
	var rates []float64
	for i := range errors*steps + 1 {
		for _, p := range []float64{centre - float64(float64(i)*unit), centre + float64(float64(i)*unit)} {
			if p > 0 && p < 1 {
				rates = append(rates, p)
			}
		}
	}
	return rates[1:] // the center is in the list twice
}

// errorAt returns the probability that a task whose trials pass with probability p is decided
// against the verdict of all its trials, and its mean number of trials. alive is the
// distribution of the passes of an undecided task:
//
//	n      fail ◄ ▒▒▒▒▒▒ alive ▒▒▒▒▒▒ ► pass
//	n+1      fail ◄ ▒▒▒▒▒▒ alive ▒▒▒▒▒▒ ► pass
//
// From one trial to the next, each boundary absorbs at most one number of passes.
func (c *calibration) errorAt(b *bounds, p float64) (wrong, trials float64) {
	passLater, failLater := c.otherwise(b.pass, p, false), c.otherwise(b.fail, p, true)
	alive := c.alive
	clear(alive)
	alive[0] = 1
	low, high := 0, 0 // range in which alive is not 0
	for n := 1; n <= c.trials; n++ {
		high++
		for s := high; s > low; s-- {
			alive[s] = float64(alive[s]*(1-p)) + float64(alive[s-1]*p)
		}
		alive[low] *= 1 - p
		if f := int(b.fail[n]); f >= low && low <= high {
			wrong += float64(alive[low] * failLater[n])
			trials += float64(alive[low] * float64(n))
			alive[low] = 0
			low++
		}
		if s := int(b.pass[n]); s <= high && low <= high {
			wrong += float64(alive[high] * passLater[n])
			trials += float64(alive[high] * float64(n))
			alive[high] = 0
			high--
		}
		if low > high {
			break
		}
	}
	return wrong, trials
}

// otherwise returns, for each point of a boundary, the probability that the remaining trials
// lead to the other verdict. It follows the boundary backwards from the end, with one trial and
// at most one pass per step. With r trials left, of which k must pass:
//
//	P(r+1, k) = P(r, k) + p·b(r, k-1)        b(r, k) = C(r, k) pᵏ (1-p)ʳ⁻ᵏ
//	P(r, k+1) = P(r, k) - b(r, k)
func (c *calibration) otherwise(boundary []int32, p float64, toPass bool) []float64 {
	out := make([]float64, c.trials+1)
	logP, logQ := math.Log(p), math.Log1p(-p)
	exactly := func(r, k int) float64 {
		if k < 0 || k > r {
			return 0
		}
		return math.Exp(c.logFact[r] - c.logFact[k] - c.logFact[r-k] + float64(float64(k)*logP) + float64(float64(r-k)*logQ))
	}
	k := c.required - int(boundary[c.trials])
	atLeast := 0.0 // P(0, k)
	if k <= 0 {
		atLeast = 1
	}
	for n := c.trials; ; {
		out[n] = atLeast
		if !toPass {
			out[n] = 1 - atLeast
		}
		if n == 1 {
			return out
		}
		n--
		atLeast += float64(p * exactly(c.trials-n-1, k-1))
		for ; k < c.required-int(boundary[n]); k++ {
			atLeast -= exactly(c.trials-n, k)
		}
	}
}
