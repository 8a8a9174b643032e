package stats

// A Family holds the tests of one pair of runs: those of its tasks, and those of all tasks
// together. The tests of the suite are about the hypothesis that none of the tasks changed.
type Family struct{ Tasks, Suite []Exact }

// Corrected holds the corrected p-values of a [Family], in the order of its tests.
type Corrected struct{ Tasks, Suite []float64 }

// Jointly corrects the p-values of all tests of several pairs of runs for their number.
// Rejecting every hypothesis whose corrected value is at most α makes an error in any test of
// any pair with a probability of at most α, whatever the dependence between the tests.
//
// The tests of all tasks and the tests of all suites are two groups. [Holm] corrects each group.
// Then each value is increased by the greatest chance, below that value, with which the other
// group could have raised an alarm. It is at most doubled, and not changed if the other group has
// too few trials to raise one.
//
// Two exceptions keep the power and the level. A suite needs no increase once a task of the same
// pair is rejected, because its hypothesis then is false, too, or an error was made already.
// Tasks need none once the suites of all pairs are rejected, for the same reason.
func Jointly(pairs []Family) []Corrected {
	var tasks, suites []Exact
	for _, f := range pairs {
		tasks, suites = append(tasks, f.Tasks...), append(suites, f.Suite...)
	}
	ownTasks, ownSuites := Holm(tasks), Holm(suites)
	both := func(own []float64, other []Exact) []float64 {
		sums, known := make([]float64, len(own)), map[float64]float64{}
		for i, p := range own {
			if _, ok := known[p]; !ok {
				known[p] = min(1, p+reachOfAny(other, p))
			}
			sums[i] = known[p]
		}
		return sums
	}
	bothTasks, bothSuites := both(ownTasks, suites), both(ownSuites, tasks)
	corrected := make([]Corrected, len(pairs))
	last := 0.0 // the value at which the suites of all pairs are rejected
	t, s := 0, 0
	for i, f := range pairs {
		c := &corrected[i]
		c.Tasks, t = bothTasks[t:t+len(f.Tasks)], t+len(f.Tasks)
		task, suite := least(c.Tasks), 1.0
		for range f.Suite {
			p := min(bothSuites[s], max(ownSuites[s], task))
			c.Suite, suite = append(c.Suite, p), min(suite, p)
			s++
		}
		last = max(last, suite)
	}
	for i := range bothTasks {
		bothTasks[i] = min(bothTasks[i], max(ownTasks[i], last))
	}
	return corrected
}

func least(list []float64) float64 {
	p := 1.0
	for _, x := range list {
		p = min(p, x)
	}
	return p
}

// reachOfAny returns the greatest chance, up to level, that any of the tests gives a p-value
// below a common limit: the chance with which tests that [Holm] corrects raise an alarm at that
// level.
func reachOfAny(tests []Exact, level float64) float64 {
	sum := func(limit float64) float64 {
		chance := 0.0
		for _, e := range tests {
			if chance += e.Reach(limit); chance > level*(1+slack) {
				break
			}
		}
		return chance
	}
	if chance := sum(1); chance <= level*(1+slack) {
		return chance
	}
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; sum(middle) <= level*(1+slack) {
			low = middle
		} else {
			high = middle
		}
	}
	return sum(low)
}
