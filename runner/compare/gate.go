package compare

import (
	"math"
	"slices"

	"waza/runner/record"
)

// Changes counts the tasks that improved or regressed. If nothing changed, it is 0 with a
// probability of at least [Comparison.Confidence].
func (c *Comparison) Changes() int {
	n := 0
	for i := range c.Comparisons {
		n += c.Comparisons[i].Improved + c.Comparisons[i].ClassCounts.Regressed
	}
	return n
}

// Verdicts counts the runs that are better or worse. If nothing changed, it is 0 with a
// probability of at least [Comparison.Confidence].
func (c *Comparison) Verdicts() int {
	n := 0
	for i := range c.Comparisons {
		if o := c.Comparisons[i].Outcome; o == record.OutcomeBetter || o == record.OutcomeWorse {
			n++
		}
	}
	return n
}

// Regressed reports whether the tests show that some run regressed, see
// [RunComparison.ShowsRegression]. If nothing changed, that has a probability of at most
// 1 - [Comparison.Confidence]: half of the level of the tasks, and half of that of the outcomes.
func (c *Comparison) Regressed() bool {
	return slices.ContainsFunc(c.Comparisons, func(r RunComparison) bool { return r.ShowsRegression() })
}

// ShowsRegression reports whether the tests show that some task regressed, or that the run is
// worse by the question of its verdict.
func (r *RunComparison) ShowsRegression() bool {
	return r.ClassCounts.Regressed > 0 || r.Outcome == record.OutcomeWorse
}

// Collapsed lists the tasks that passed all counted trials of the reference and none of the run,
// although no test shows that they regressed. They have too few trials for a test.
func (r *RunComparison) Collapsed() []*TaskComparison {
	var list []*TaskComparison
	for i := range r.Tasks {
		if r.Tasks[i].Collapsed {
			list = append(list, &r.Tasks[i])
		}
	}
	return list
}

// NonePassed reports whether the run passed no trial of the compared tasks, although the
// reference passed some.
func (r *RunComparison) NonePassed() bool {
	reference := 0
	for i := range r.Tasks {
		if r.Tasks[i].Run.Passed > 0 {
			return false
		}
		reference += r.Tasks[i].Reference.Passed
	}
	return reference > 0
}

// collapsed reports whether a task of this class passed always before and never now.
func (t *taskPair) collapsed(class record.Class) bool {
	return class != record.Regressed && t.A.Share.N > 0 && t.A.Share.Passed == t.A.Share.N && t.B.Share.N > 0 && t.B.Share.Passed == 0
}

// ChanceOfCollapse returns the greatest probability, over all pass rates, that a task that did
// not change passes all of reference trials and then none of run trials: 25 % with one trial
// each, 6 % with two, 1.6 % with three and 0.1 % with five.
func ChanceOfCollapse(reference, run int) float64 {
	if reference <= 0 || run <= 0 {
		return 1
	}
	a, b := float64(reference), float64(run)
	return math.Exp(a*math.Log(a/(a+b)) + b*math.Log(b/(a+b)))
}

// effectOfCollapse returns what a collapsed task means if the caller does not say it. In one run
// of each suite against its reference, it fails. Among several runs, or the cells of one, some
// task collapses by chance too often, so that waza only warns.
func effectOfCollapse(suites [][]*side) OnTasks {
	for _, sides := range suites {
		if len(sides) != 2 || sides[0].head.Cell != nil && sides[1].head.Cell != nil && sides[0].head.RunID == sides[1].head.RunID {
			return OnTasksWarn
		}
	}
	return OnTasksFail
}

// Suites returns a comparison for each suite, or, for one suite, the comparison itself.
func (c *Comparison) Suites() []*Comparison {
	var suites []*Comparison
	runs := c.Runs
	for i := 0; i < len(c.Comparisons); {
		end := i + 1
		for end < len(c.Comparisons) && c.Comparisons[end].Reference == c.Comparisons[i].Reference {
			end++
		}
		one := *c
		one.Runs, one.Comparisons, one.Single = runs[:1+end-i], c.Comparisons[i:end], nil
		suites, runs, i = append(suites, &one), runs[1+end-i:], end
	}
	if len(suites) < 2 {
		return []*Comparison{c}
	}
	return suites
}
