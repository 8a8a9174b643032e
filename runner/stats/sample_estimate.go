package stats

import (
	"math"
	"sort"
	"waza/runner/record"
)

// Interval returns the interval of the task's pass rate. For a fixed number of trials it is
// [ClopperPearson]'s. For a sample that could stop early, it contains the rates at which neither this
// outcome or a lower one, nor this or a higher one, has a probability below (1 - confidence) /
// 2, with outcomes in the stagewise order. It covers the rate with at least that confidence,
// whatever the rate is, if trials pass independently with the same probability. If more than
// 1,000 trials ended, it is the confidence sequence of [Sequential], for the share of all trials
// of the task.
func (s *Sample) Interval(confidence float64) record.Interval {
	switch {
	case !s.sequential():
		return ClopperPearson(s.passed, s.n, confidence)
	case s.n == 0:
		return record.Interval{Low: 0, High: 1}
	}
	low, high, ok := s.limits()
	if !ok {
		return s.sequenceInterval(confidence)
	}
	tail := (1 - saneConfidence(confidence)) / 2
	return record.Interval{
		Low:  where(0, 1, func(p float64) bool { return low(p) > tail }),
		High: where(0, 1, func(p float64) bool { return high(p) >= 1-tail }),
	}
}

// limits returns two functions of the pass rate p that rise from 0 to 1: the probability of this
// outcome or a higher one, and 1 minus the probability of this outcome or a lower one. ok is
// false for a sample of more than [maxPaths] trials that could stop early.
func (s *Sample) limits() (low, high func(p float64) float64, ok bool) {
	if s.n == 0 { // nothing is known
		low, high := func(p float64) float64 { return betaBelow(0, 1, p) }, func(p float64) float64 { return betaBelow(1, 0, p) }
		return low, high, true
	}
	if !s.sequential() {
		m, _ := meanOf([]Part{RatePart(s.Share())})
		return m.low, m.high, true
	}
	if s.n > maxPaths {
		return nil, nil, false
	}
	paths := s.paths(s.n)
	at := s.at(paths)
	above := func(paths []path) func(p float64) float64 {
		return func(p float64) float64 {
			switch {
			case p < 0:
				return 0
			case p >= 1:
				return 1
			}
			return 1 - probability(paths, p)
		}
	}
	return above(paths[:at]), above(paths[:at+1]), true
}

// probability returns the probability of stopping at any of the places if trials pass with
// probability p.
func probability(paths []path, p float64) float64 {
	sum := 0.0
	for _, at := range paths {
		sum += at.probability(p)
	}
	return sum
}

func (at path) probability(p float64) float64 {
	switch {
	case p <= 0:
		if at.passed == 0 {
			return at.ways
		}
		return 0
	case p >= 1:
		if at.passed == at.n {
			return at.ways
		}
		return 0
	}
	return math.Exp(math.Log(at.ways) + float64(float64(at.passed)*math.Log(p)) + float64(float64(at.n-at.passed)*math.Log1p(-p)))
}

// sequenceInterval contains the shares of passes among all trials that the confidence sequence
// does not exclude.
func (s *Sample) sequenceInterval(confidence float64) record.Interval {
	all := s.Counting()
	level := -math.Log(float64(s.n)+1) + math.Log(1-saneConfidence(confidence))
	likely := func(count int) bool { return logHypergeometric(all, count, s.n, s.passed) > level }
	best := min(max(int(math.Round(float64(s.passed)/float64(s.n)*float64(all))), s.passed), all-s.n+s.passed)
	low, high := s.passed, all-s.n+s.passed
	low += sort.Search(best-low, func(i int) bool { return likely(low + i) })
	high = best + sort.Search(high-best, func(i int) bool { return !likely(best + i + 1) })
	return record.Interval{Low: float64(low) / float64(all), High: float64(high) / float64(all)}
}

// Unbiased estimates the task's pass rate without the bias of stopping: its mean over all
// possible outcomes is the rate itself. It is the probability that the first trial passed, given
// where the trials stopped (Girshick, Mosteller and Savage 1946, "Unbiased Estimates for Certain
// Binomial Sampling Problems"). For a fixed number of trials it is the share that passed.
//
// A single estimate varies more than the share does: for a task that stops at its first failure,
// it only states whether the first trial passed. It is meant for means over tasks. ok is false
// without trials, and for more than 1,000 of them.
func (s *Sample) Unbiased() (rate float64, ok bool) {
	if !s.sequential() {
		return s.Share().Rate(), s.n > 0
	}
	if s.n == 0 || s.n > maxPaths {
		return 0, false
	}
	ways := s.waysHere(1)
	return ways.passed[1] / ways.all, true
}

// Curve is like [Curve], but for the sample: its estimates are unbiased, too. k ends where the
// task could have stopped before k trials.
func (s *Sample) Curve(limit int) []record.AtK {
	if !s.sequential() {
		return Curve(s.n, s.passed, limit)
	}
	if limit <= 0 {
		limit = MaxK
	}
	if s.n == 0 || s.n > maxPaths {
		return nil
	}
	last := 1
	for last < min(limit, s.n) && !s.stopsAt(last, 0) && !s.stopsAt(last, last) {
		last++
	}
	ways := s.waysHere(last)
	curve := make([]record.AtK, last)
	for i := range curve {
		k := i + 1
		curve[i] = record.AtK{K: k, PassAtK: clamp(1-ways.failed[k]/ways.all, 0, 1), PassHatK: clamp(ways.passed[k]/ways.all, 0, 1)}
	}
	return curve
}

func (s *Sample) stopsAt(n, passed int) bool {
	return s.ruleAfter(n).Decide(n, passed) != Undecided
}

// ways holds the numbers of orders in which the trials can have reached their place.
type ways struct {
	all float64
	// passed[k] and failed[k] count the orders in which the first k trials all passed, or all
	// failed.
	passed, failed []float64
}

// waysHere walks back from the place of the trials: from[k] is the number of orders that lead
// there from i trials with k passes. last is at most the first number of trials after which the
// sample can stop.
func (s *Sample) waysHere(last int) ways {
	w := ways{passed: make([]float64, last+1), failed: make([]float64, last+1)}
	from := make([]float64, s.n+2)
	from[s.passed] = 1
	for i := s.n; ; i-- {
		if i < s.n {
			fails, passes := -1, i+1
			if i > 0 {
				fails, passes = s.ruleAfter(i).boundaries(i)
			}
			for k := range i + 1 {
				if k <= fails || k >= passes {
					from[k] = 0 // the trials would have stopped there
				} else {
					from[k] += from[k+1]
				}
			}
			from[i+1] = 0
		}
		if i <= last {
			w.passed[i], w.failed[i] = from[i], from[0]
		}
		if i == 0 {
			w.all = from[0]
			return w
		}
	}
}
