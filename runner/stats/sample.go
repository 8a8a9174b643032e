package stats

import "slices"

// A Sample is the way of one task through its trials: the rule by which they stop, how many
// counted and passed, where errors lay between them, and the decision that ended them. Trials
// that stopped because of their outcomes are not an ordinary sample. Early passes and failures
// ended it, so the share of passes is biased away from the threshold, and intervals and tests
// for a fixed number of trials are not valid. The methods of Sample allow for the rule.
//
// Call [NewSample] and add the trials in the order of their numbers. For a fixed number of
// trials call [FixedSample]. A Sample is not safe for concurrent use.
type Sample struct {
	rule StoppingRule
	n    int
	// passed is the number of passes among the n trials.
	passed int
	// errors holds, for each trial in error, how many trials counted before it.
	errors   []int32
	decision Decision
	current  *Sequential // the rule after the errors so far; nil until needed
}

// NewSample returns an empty sample of a task that stops by the rule.
func NewSample(rule StoppingRule) *Sample { return &Sample{rule: rule} }

// FixedSample returns the sample of a task whose number of trials did not depend on their
// outcomes.
func FixedSample(s Share) *Sample {
	s = s.sane()
	return &Sample{n: s.N, passed: s.Passed}
}

// Add adds the next trial that counts, and returns the decision after it. It ignores trials
// after a decision.
func (s *Sample) Add(passed bool) Decision {
	if s.decision != Undecided {
		return s.decision
	}
	s.n++
	if passed {
		s.passed++
	}
	if s.sequential() {
		if s.current == nil {
			s.current = s.rule.Sequential(len(s.errors))
		}
		s.decision = s.current.Decide(s.n, s.passed)
	}
	return s.decision
}

// AddError adds the next trial, which does not count.
func (s *Sample) AddError() {
	if s.decision == Undecided {
		s.errors = append(s.errors, int32(s.n))
		s.current = nil
	}
}

// Share returns the passes among the trials that count, up to the decision.
func (s *Sample) Share() Share { return Share{s.passed, s.n} }

// Decision returns the decision so far.
func (s *Sample) Decision() Decision { return s.decision }

// Counting returns the number of trials of the task, without those in error so far.
func (s *Sample) Counting() int { return s.rule.Trials - len(s.errors) }

// Certain reports whether no outcome of the remaining trials could change the verdict.
func (s *Sample) Certain() bool {
	required := s.rule.Required(s.Counting())
	return s.passed >= required || s.passed+s.Counting()-s.n < required
}

func (s *Sample) sequential() bool { return s.rule.Confidence > 0 }

// ruleAfter returns the rule that applies after the n-th counted trial. It assumes that future
// trials end without error.
func (s *Sample) ruleAfter(n int) *Sequential {
	before := len(s.errors)
	for before > 0 && int(s.errors[before-1]) >= n {
		before--
	}
	return s.rule.Sequential(before)
}

// A path is a place where trials can stop: after n trials with that many passes.
type path struct {
	n, passed int
	// ways is the number of orders of passes and failures that stop there.
	ways float64
}

// maxPaths is the largest number of trials for which ways are counted. The number of ways grows
// up to 2^n, which must fit into a float64.
const maxPaths = 1000

// paths lists all places where the trials can stop, from the lowest to the highest. First come
// the places of failure, the earliest first; then those that ended undecided with the n-th
// trial, by the number of passes; then the places of passing, the earliest last. This is the
// stagewise order (Armitage 1957, "Restricted sequential procedures"; Jennison and Turnbull
// 1999, "Group Sequential Methods", section 8.4). The order up to a place does not depend on
// anything after that place.
//
// It counts with a walk over the lattice of trials and passes, which takes n times the distance
// of the boundaries. There are at most [maxPaths] trials.
func (s *Sample) paths(n int) []path {
	var failed, undecided, passed []path
	alive := []float64{1} // ways to each number of passes from low on
	low := 0
	for i := 1; i <= n && len(alive) > 0; i++ {
		alive = append(alive, 0)
		for k := len(alive) - 1; k > 0; k-- {
			alive[k] += alive[k-1]
		}
		if !s.sequential() {
			continue
		}
		fails, passes := s.ruleAfter(i).boundaries(i)
		for len(alive) > 0 && low <= fails {
			failed = append(failed, path{i, low, alive[0]})
			alive, low = alive[1:], low+1
		}
		from := min(max(passes-low, 0), len(alive))
		for k := len(alive) - 1; k >= from; k-- {
			passed = append(passed, path{i, low + k, alive[k]})
		}
		alive = alive[:from]
	}
	for k, ways := range alive {
		undecided = append(undecided, path{n, low + k, ways})
	}
	slices.Reverse(passed)
	return slices.Concat(failed, undecided, passed)
}

// at returns the index in paths of the place where the sample stopped.
func (s *Sample) at(paths []path) int {
	return slices.IndexFunc(paths, func(p path) bool { return p.n == s.n && p.passed == s.passed })
}
