package stats

import "slices"

// Sample holds the trials of one task that count, and the rule by which they
// stopped. Trials that stopped because of their outcomes are no ordinary sample:
// passes and failures that came early ended it, so their share is biased away from
// the threshold, and intervals and tests for a fixed number of trials do not hold.
// The methods of Sample allow for the rule.
//
// Call [NewSample] and add the trials in the order of their numbers, or
// [FixedSample] for a number of trials that was fixed. A Sample is not safe for
// concurrent use.
type Sample struct {
	rule StoppingRule
	n    int
	// passed is how many of the n trials passed.
	passed int
	// errors holds, for each trial in error, how many trials counted before it.
	errors   []int32
	decision Decision
	current  *Sequential // the rule after the errors so far; nil until needed
}

// NewSample returns an empty sample of a task that stops by the rule.
func NewSample(rule StoppingRule) *Sample { return &Sample{rule: rule} }

// FixedSample returns the sample of a task whose number of trials did not depend
// on their outcomes.
func FixedSample(s Share) *Sample {
	s = s.sane()
	return &Sample{n: s.N, passed: s.Passed}
}

// Add takes the next trial that counts, and returns what is decided with it. Trials
// after a decision are left out.
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

// AddError takes the next trial, which does not count.
func (s *Sample) AddError() {
	if s.decision == Undecided {
		s.errors = append(s.errors, int32(s.n))
		s.current = nil
	}
}

// Share is how many trials passed of those that count, up to the decision.
func (s *Sample) Share() Share { return Share{s.passed, s.n} }

// Decision is what is decided.
func (s *Sample) Decision() Decision { return s.decision }

// Counting is how many trials the task has, without those in error so far.
func (s *Sample) Counting() int { return s.rule.Trials - len(s.errors) }

// Certain reports whether the verdict could not change any more, whatever trials
// were still to come.
func (s *Sample) Certain() bool {
	required := s.rule.Required(s.Counting())
	return s.passed >= required || s.passed+s.Counting()-s.n < required
}

func (s *Sample) sequential() bool { return s.rule.Confidence > 0 }

// looksAt is the rule that the n-th counted trial was, or will be, looked at with.
// Trials to come are taken to end without error.
func (s *Sample) looksAt(n int) *Sequential {
	before := len(s.errors)
	for before > 0 && int(s.errors[before-1]) >= n {
		before--
	}
	return s.rule.Sequential(before)
}

// path is a place where trials can stop: after n trials, of which so many passed.
type path struct {
	n, passed int
	// ways is the number of orders of passes and failures that stop there.
	ways float64
}

// maxPaths is the largest number of trials for which ways are counted: they grow
// up to 2^n, which must fit into a float64.
const maxPaths = 1000

// paths lists all places where the trials can stop, from the lowest to the highest:
// those that failed, the earliest first; those that ended undecided with the
// n-th trial, by how many passed; and those that passed, the earliest last. This is
// the stagewise order (Armitage 1957, "Restricted sequential procedures";
// Jennison and Turnbull 1999, "Group Sequential Methods", section 8.4). Up to a
// place it depends on nothing that comes after that place.
//
// It counts by a walk over the lattice of trials and passes, which costs n
// times the distance of the boundaries. There are at most [maxPaths] trials.
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
		fails, passes := s.looksAt(i).boundaries(i)
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

// at is the index of the place where the sample stopped, in a list of paths.
func (s *Sample) at(paths []path) int {
	return slices.IndexFunc(paths, func(p path) bool { return p.n == s.n && p.passed == s.passed })
}
