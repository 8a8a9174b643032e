package stats

import (
	"math"
	"sort"
	"sync"
)

// Decision is what is known of the verdict on a task before all its trials have ended.
type Decision int

// The decisions of a [Sequential] rule.
const (
	Undecided Decision = iota
	WillPass
	WillFail
)

// maxCalibrated is the largest number of trials for which boundaries are
// calibrated; it bounds what a rule costs to make. With more trials than that the
// confidence sequence, which has no such cost, saves enough.
const maxCalibrated = 500

// Sequential says when the verdict on a task of N trials, of which m must pass, is
// decided before all have ended. It may be asked after each trial, in the order of
// their numbers: that order, unlike the one in which they end, has nothing to do
// with what becomes of them.
//
// It decides on the verdict that all N trials would have led to. For trials that are
// independent and pass with the same probability p, the probability that it decides
// otherwise is at most 1 - confidence, for every p, however often one looks. (No rule
// that says whether p itself lies above the threshold could be that sure: close to it no
// number of trials is enough.)
//
// The promise takes N as known. A trial in error does not count and leaves a rule for
// one trial fewer, so with errors it is about the trials that are left at the decision, if
// they end without error. If they are in error as often as those before, the rule errs
// a little more often for some small N whose required share jumps with the next
// trial: in 5.6 % of cases at worst of what docs/statistics.md measured.
//
// Up to [maxCalibrated] trials the rule is stochastic curtailment (Lan, Simon and
// Halperin, Communications in Statistics C 1, 1982) by the beta-binomial predictive
// probability that all N trials lead to a pass, under a prior worth two trials that
// is centred at the threshold: passed when it is at least 1 - a, failed when at
// most b. The bounds a and b are calibrated: a recursion over all ways the trials
// can go gives the exact probability of a wrong decision, with a look after each
// trial, for every p of a fine grid. Of the pairs (a, b) that keep it at most
// 1 - confidence, the one is taken that needs the fewest trials where p is 0.1
// away from the threshold.
//
// With more trials it is the prior-posterior-ratio confidence sequence for the
// number of passes among N, sampled without replacement (Waudby-Smith and Ramdas,
// NeurIPS 2020), with a uniform prior: a count is ruled out when its likelihood is
// less than 1 - confidence times the mean over all counts. That bounds the
// probability of a wrong decision for every order and every count of passes.
//
// Either includes exact curtailment: what cannot change any more is decided, with
// a confidence of 1 nothing else. A Sequential is immutable and safe for concurrent use.
type Sequential struct {
	trials, required int
	alpha            float64 // the probability of a wrong decision, at most
	bounds           *bounds // nil when there are too many trials
}

// NewSequential makes the rule for a task of which so many trials count and so
// many of them must pass. The confidence is between 0.5 and 1. The first rule of
// its kind takes some milliseconds, up to 0.1 s for hundreds of trials; it is
// remembered.
func NewSequential(trials, required int, confidence float64) *Sequential {
	s := &Sequential{trials: trials, required: required, alpha: 1 - min(1, max(0.5, confidence))}
	if s.alpha > 1e-9 && trials <= maxCalibrated && required > 0 && required <= trials {
		s.bounds = designs.get(design{trials, required, s.alpha})
	}
	return s
}

// Decide returns what is decided after n trials, of which so many passed. It takes
// less than a microsecond.
func (s *Sequential) Decide(n, passed int) Decision {
	switch {
	case n <= 0:
		return Undecided
	case passed >= s.required:
		return WillPass
	case passed+s.trials-n < s.required:
		return WillFail
	case s.alpha <= 1e-9:
		return Undecided
	case s.bounds == nil:
		return s.ruleOut(n, passed)
	case passed >= int(s.bounds.pass[n]):
		return WillPass
	case passed <= int(s.bounds.fail[n]):
		return WillFail
	}
	return Undecided
}

// boundaries are, after n trials, the largest number of passes that decides on a
// failure, and the smallest that decides on a pass. One that nothing decides on is -1
// or n + 1.
func (s *Sequential) boundaries(n int) (fails, passes int) {
	passes = sort.Search(n+1, func(k int) bool { return s.Decide(n, k) == WillPass })
	fails = sort.Search(passes, func(k int) bool { return s.Decide(n, k) != WillFail }) - 1
	return fails, passes
}

// ruleOut decides by the confidence sequence. The likelihood of a count rises up
// to what the share so far suggests and falls after it, so of those that mean the
// other verdict only the nearest is to be ruled out.
func (s *Sequential) ruleOut(n, passed int) Decision {
	count, decision := s.required-1, WillPass
	if float64(passed)*float64(s.trials) < float64(s.required)*float64(n) {
		count, decision = s.required, WillFail
	}
	// Under the uniform prior every number of passes among n is as likely as any other.
	mean := -math.Log(float64(n) + 1)
	if logHypergeometric(s.trials, count, n, passed) <= mean+math.Log(s.alpha) {
		return decision
	}
	return Undecided
}

// logHypergeometric is the logarithm of the probability of so many passes among n
// trials of all, of which passes pass.
func logHypergeometric(all, passes, n, passed int) float64 {
	if passed > passes || n-passed > all-passes {
		return math.Inf(-1)
	}
	return logChoose(passes, passed) + logChoose(all-passes, n-passed) - logChoose(all, n)
}

// designs are the calibrated rules made so far.
var designs designCache

// maxDesigns bounds those that are remembered: about 4 kB each, 1 MB in all.
const maxDesigns = 256

type designCache struct {
	mu    sync.Mutex // guards known; held while a rule is made, for others want the same one
	known map[design]*bounds
}

func (c *designCache) get(d design) *bounds {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.known[d]; b != nil {
		return b
	}
	if c.known == nil || len(c.known) >= maxDesigns {
		c.known = map[design]*bounds{}
	}
	c.known[d] = d.calibrate()
	return c.known[d]
}
