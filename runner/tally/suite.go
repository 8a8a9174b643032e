package tally

import (
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// A ComparedSuite holds the compared tasks of one pair of sides, and the tests of all tasks
// together. [NewComparedSuite] creates one, and [Correct] makes its results valid.
type ComparedSuite struct {
	Tasks     []*ComparedTask
	tests     []stats.Exact
	corrected []float64
}

// NewComparedSuite runs the tests of each task and those of the suite.
//
// The tests of the suite are about whether any of the tasks changed, by the sum of all changes
// in pass rate and, if scores carry more information, in score. The intervals of tasks that could
// stop early have the given confidence.
func NewComparedSuite(tasks []*ComparedTask, confidence float64) *ComparedSuite {
	s := &ComparedSuite{Tasks: tasks}
	for _, t := range tasks {
		t.test()
	}
	if s.CouldStop() {
		s.tests = s.stoppedTests(confidence)
		return s
	}
	var strata []stats.Stratum
	var scores []stats.Scores
	for _, t := range tasks {
		strata = append(strata, stats.Stratum{A: t.A.Share, B: t.B.Share})
		if a, b := t.A.Scores(), t.B.Scores(); len(a) > 0 && len(b) > 0 {
			scores = append(scores, stats.Scores{A: a, B: b})
		}
	}
	s.tests = []stats.Exact{stats.TheseTasks(strata)}
	if s.Informative() {
		s.tests = append(s.tests, stats.PermutationStrata(scores, stats.DefaultSeed))
	}
	return s
}

// Informative reports whether the scores of some task carry more information than its verdicts.
func (s *ComparedSuite) Informative() bool {
	return slices.ContainsFunc(s.Tasks, func(t *ComparedTask) bool { return t.ScoresInformative })
}

// CouldStop reports whether some task could stop early.
func (s *ComparedSuite) CouldStop() bool {
	return slices.ContainsFunc(s.Tasks, (*ComparedTask).CouldStop)
}

// Tests returns the number of tests of the tasks.
func (s *ComparedSuite) Tests() int {
	n := 0
	for _, t := range s.Tasks {
		n += len(t.Tests)
	}
	return n
}

// leastForSigns is the least number of tasks with which exchanging the sides within tasks can
// show a change at 95 %: 2/2⁶ is the first p-value below 5 %.
const leastForSigns = 6

// stoppedTests returns the tests of a suite with tasks that could stop early. The first is
// whether the sharpest test of a task shows a change. If both sides followed the same rules, the
// second is whether more tasks move in one direction than in the other. If nothing changed,
// exchanging a task's two outcomes does not change their distribution, whatever rule stopped its
// trials.
func (s *ComparedSuite) stoppedTests(confidence float64) []stats.Exact {
	var all []stats.Exact
	var rates, scores []stats.Scores
	same := true
	for _, t := range s.Tasks {
		if t.Untestable() {
			continue
		}
		all = append(all, t.Tests...)
		same = same && t.SameRule
		rate := t.Rate(confidence)
		rates = append(rates, stats.Scores{A: []float64{rate.Reference}, B: []float64{rate.Run}})
		if c := t.Score(confidence); c != nil {
			scores = append(scores, stats.Scores{A: []float64{c.Reference}, B: []float64{c.Run}})
		}
	}
	tests := []stats.Exact{stats.Sharpest(all)}
	if same && len(rates) >= leastForSigns {
		tests = append(tests, stats.PermutationStrata(rates, stats.DefaultSeed))
		if s.Informative() {
			tests = append(tests, stats.PermutationStrata(scores, stats.DefaultSeed))
		}
	}
	return tests
}

// Correct corrects the p-values of all tests of all suites together, see [stats.Jointly]. The
// suites must be all that one decision depends on, such as the exit code of a command.
func Correct(suites ...*ComparedSuite) {
	families := make([]stats.Family, len(suites))
	for i, s := range suites {
		families[i].Suite = s.tests
		for _, t := range s.Tasks {
			families[i].Tasks = append(families[i].Tasks, t.Tests...)
		}
	}
	for i, c := range stats.Jointly(families) {
		suites[i].corrected = c.Suite
		for _, t := range suites[i].Tasks {
			t.corrected, c.Tasks = c.Tasks[:len(t.Tests)], c.Tasks[len(t.Tests):]
			for j := range t.Out {
				t.Out[j].Corrected = t.corrected[j]
			}
		}
	}
}

// Outcome returns what the tests show at the confidence, of pass rates before scores, and the
// smallest corrected p-value. It is better or worse for the second side, else undecided; only
// intervals can show that both are the same.
func (s *ComparedSuite) Outcome(confidence float64) (outcome record.Outcome, p float64) {
	outcome, p = record.OutcomeUndecided, 1
	for i := len(s.tests) - 1; i >= 0; i-- {
		p = min(p, s.corrected[i])
		switch {
		case s.corrected[i] > 1-confidence:
		case s.tests[i].Better:
			outcome = record.OutcomeBetter
		default:
			outcome = record.OutcomeWorse
		}
	}
	return outcome, p
}

// needed returns how many trials of each task would show the mean difference of the pass rates,
// by the normal approximation of the test of the suite, at half of the level, which the tests of
// the tasks leave to it. It returns nil without a difference, which no number of trials shows.
func (s *ComparedSuite) needed(difference, confidence float64) *record.Needed {
	if math.Abs(difference) < SameNumber {
		return nil
	}
	variance, have := 0.0, 0
	for i, t := range s.Tasks {
		a, b := t.A.Share, t.B.Share
		rate := stats.Share{Passed: a.Passed + b.Passed, N: a.N + b.N}.Rate()
		variance += rate * (1 - rate)
		if n := min(a.N, b.N); i == 0 || n < have {
			have = n
		}
	}
	spread := math.Sqrt(variance) / float64(len(s.Tasks))
	n, ok := stats.ScoreTrialsNeeded(difference, spread, spread, (1-confidence)/2, Power)
	if !ok {
		return &record.Needed{}
	}
	n = max(n, have+1) // the present trials did not decide
	return &record.Needed{Trials: n, More: n - have}
}
