package decide

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// Estimate returns the mean over the tasks of the mean gain of their pairs, and an interval for the
// true gain. The interval is a confidence sequence: with a chance of at least 1 - Risk it contains
// the true gain after every pair, so looks and the stop at a verdict do not harm it. It is wider for
// missing pairs, whose gain could be anything from -1 to 1.
//
// The interval contains the gains against which bets have not won yet (Waudby-Smith and Ramdas
// 2024). A gain g has two bets, one against "at most g" and one against "at least g". These share
// the risk: the former has 95 % of it if g is at most 0, 5 % if g is at least BetterBy, and in
// between a share that falls linearly. Therefore the interval agrees with the verdict. It lies above 0 for
// [Better], and below BetterBy for [NotBetter].
//
// Pairs that were added after the verdict change the estimate, but not its interval. The value is
// within the interval. Before the first round has ended, the interval is that from -1 to 1.
func (e *Evidence) Estimate() stats.Estimate {
	low := e.bound(func(g float64) bool { return e.rejected(g, true) }, -1, 1, 0)
	high := e.bound(func(g float64) bool { return e.rejected(g, false) }, 1, -1, e.question.BetterBy)
	if low > high {
		// Both bets won against the gains in between, so that no gain is left. This has a chance below
		// the risk. The interval then contains these gains.
		low, high = high, low
	}
	return stats.Estimate{Value: min(max(e.mean(), low), high), Interval: record.Interval{Low: low, High: high}}
}

// mean returns the mean over the tasks of the mean gain of their pairs. A task without pairs counts
// with the gain that is predicted for it.
func (e *Evidence) mean() float64 {
	if len(e.tasks) == 0 {
		return 0
	}
	var p plan
	p.update(e.tasks, e.question)
	sum := 0.0
	for i := range e.tasks {
		if t := &e.tasks[i]; t.n > 0 {
			sum += t.sum / float64(t.n)
		} else {
			sum += p.predictions[i]
		}
	}
	return sum / float64(len(e.tasks))
}

// bound returns the last rejected gain on the way from one limit to the other, or the first limit if
// it is not rejected. If the claim of a verdict is rejected, the result is beyond the claim.
func (e *Evidence) bound(rejected func(float64) bool, from, to, claim float64) float64 {
	if !rejected(from) {
		return from
	}
	if rejected(to) {
		return to
	}
	start := from
	if rejected(claim) {
		start = claim
	}
	out, in := start, to
	for range 40 {
		if middle := (out + in) / 2; rejected(middle) {
			out = middle
		} else {
			in = middle
		}
	}
	if out == claim {
		return in
	}
	return out
}

// rejected reports whether the bet against a gain of at most g, or of at least g, has won.
func (e *Evidence) rejected(g float64, up bool) bool {
	d := e.question.BetterBy
	weight := mainShare + float64((1-2*mainShare)*min(max(g/d, 0), 1)) // of the bet against at most g
	w := start()
	if up {
		for _, o := range e.history[:e.counted] {
			w.bet(o.size, g, max(g, 0), o.low, o.least)
		}
	} else {
		weight = 1 - weight
		for _, o := range e.history[:e.counted] {
			w.bet(o.size, -g, -min(g, d), -o.high, -o.most)
		}
	}
	return float64(weight*w.total()) >= 1/e.question.Risk
}
