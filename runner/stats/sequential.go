package stats

import (
	"math"
	"sort"
	"sync"
)

// A Decision states whether the verdict on a task is decided before all its trials have ended.
type Decision int

// The decisions of a [Sequential] rule.
const (
	Undecided Decision = iota
	WillPass
	WillFail
)

// maxCalibrated is the largest number of trials for which boundaries are calibrated. It limits
// the cost of making a rule. With more trials, the confidence sequence saves enough, and has no
// such cost.
const maxCalibrated = 500

// A Sequential decides when the verdict on a task of N trials, of which m must pass, is certain
// enough before all have ended. It can be asked after each trial, in the order of their numbers.
// Unlike the order in which trials end, that order does not depend on their outcomes.
//
// It decides on the verdict that all N trials would have led to. If trials are independent and
// pass with the same probability p, the probability of a different decision is at most 1 -
// confidence, for every p, however often one looks. (No rule that decides whether p itself is
// above the threshold could be that certain: close to the threshold no number of trials is
// enough.)
//
// The promise assumes that N is known. A trial in error does not count and leaves a rule for one
// trial fewer. With errors, the promise is therefore about the trials that are left at the
// decision, if they end without error. If they are in error as often as the earlier ones, the
// rule errs a little more often for some small N whose required share jumps with the next trial:
// in at most 5.6 % of the cases that docs/statistics.md measured.
//
// Up to [maxCalibrated] trials the rule is stochastic curtailment (Lan, Simon and Halperin,
// Communications in Statistics C 1, 1982) by the beta-binomial predictive probability that all N
// trials lead to a pass. The prior has the weight of two trials and is centered at the threshold.
// A task is passed if that probability is at least 1 - a, and failed if it is at most b. The
// bounds a and b are calibrated: a recursion over all possible outcomes gives the exact
// probability of a wrong decision, with a look after each trial, for every p of a fine grid. Of
// the pairs (a, b) that keep it at most 1 - confidence, the rule uses the pair that needs the
// fewest trials where p is 0.1 away from the threshold.
//
// With more trials it is the prior-posterior-ratio confidence sequence for the number of passes
// among N, sampled without replacement (Waudby-Smith and Ramdas, NeurIPS 2020), with a uniform
// prior. A count is ruled out if its likelihood is less than 1 - confidence times the mean over
// all counts. That limits the probability of a wrong decision for every order and every count of
// passes.
//
// Both include exact curtailment: a verdict that cannot change any more is decided. With a
// confidence of 1 nothing else is. A Sequential is immutable and safe for concurrent use.
type Sequential struct {
	trials, required int
	alpha            float64 // the largest probability of a wrong decision
	bounds           *bounds // nil if there are too many trials
}

// NewSequential returns the rule for a task with that many counting trials, of which required
// must pass. The confidence is from 0.5 to 1. The first rule with the same parameters takes some
// milliseconds, up to 0.1 s for hundreds of trials; it is then cached.
func NewSequential(trials, required int, confidence float64) *Sequential {
	s := &Sequential{trials: trials, required: required, alpha: 1 - min(1, max(0.5, confidence))}
	if s.alpha > 1e-9 && trials <= maxCalibrated && required > 0 && required <= trials {
		s.bounds = designs.get(design{trials, required, s.alpha})
	}
	return s
}

// Decide returns the decision after n trials with that many passes. It takes less than a
// microsecond.
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

// boundaries returns, after n trials, the largest number of passes that decides on a failure,
// and the smallest that decides on a pass. If no number decides on a failure, fails is -1; if
// none decides on a pass, passes is n + 1.
func (s *Sequential) boundaries(n int) (fails, passes int) {
	passes = sort.Search(n+1, func(k int) bool { return s.Decide(n, k) == WillPass })
	fails = sort.Search(passes, func(k int) bool { return s.Decide(n, k) != WillFail }) - 1
	return fails, passes
}

// ruleOut decides by the confidence sequence. The likelihood of a count rises up to the count
// that the share so far suggests, and falls after it. So of the counts with the other verdict,
// only the nearest has to be ruled out.
func (s *Sequential) ruleOut(n, passed int) Decision {
	count, decision := s.required-1, WillPass
	if float64(passed)*float64(s.trials) < float64(s.required)*float64(n) {
		count, decision = s.required, WillFail
	}
	// With the uniform prior, every number of passes among n is equally likely.
	mean := -math.Log(float64(n) + 1)
	if logHypergeometric(s.trials, count, n, passed) <= mean+math.Log(s.alpha) {
		return decision
	}
	return Undecided
}

// logHypergeometric returns the logarithm of the probability of passed passes among n trials,
// drawn from all trials, of which passes pass.
func logHypergeometric(all, passes, n, passed int) float64 {
	if passed > passes || n-passed > all-passes {
		return math.Inf(-1)
	}
	return logChoose(passes, passed) + logChoose(all-passes, n-passed) - logChoose(all, n)
}

// designs caches the calibrated rules.
var designs designCache

// maxDesigns is the maximum number of cached rules: about 4 kB each, 1 MB in total.
const maxDesigns = 256

type designCache struct {
	mu    sync.Mutex // guards known; held while a rule is made, because others need the same rule
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
