package stats_test

import (
	"slices"
	"testing"

	"waza/runner/stats"
)

func TestJointly(t *testing.T) {
	t.Parallel()
	lost := func(n int) stats.Exact { return stats.Fisher(stats.Share{Passed: n, N: n}, stats.Share{N: n}) }
	equal := func(n int) stats.Exact {
		return stats.Fisher(stats.Share{Passed: n, N: n}, stats.Share{Passed: n, N: n})
	}
	suite := stats.TheseTasks([]stats.Stratum{{A: stats.Share{Passed: 8, N: 8}, B: stats.Share{Passed: 2, N: 8}}})
	near := func(got, want float64) bool { return got-want < 1e-9 && want-got < 1e-9 }

	// Tasks that cannot raise an alarm do not weaken the suite.
	if c := stats.Jointly([]stats.Family{
		{Tasks: []stats.Exact{lost(1), lost(1)}, Suite: []stats.Exact{suite}},
	}); !near(c[0].Suite[0], suite.P) {
		t.Errorf("the suite has the p-value %g, corrected %g", suite.P, c[0].Suite[0])
	}
	// Tasks that can make the suite's value larger, at most twice as large.
	silent := stats.Fisher(stats.Share{Passed: 10, N: 20}, stats.Share{Passed: 10, N: 20})
	c := stats.Jointly([]stats.Family{{Tasks: []stats.Exact{silent}, Suite: []stats.Exact{suite}}})
	if p := c[0].Suite[0]; p <= suite.P || p > 2*suite.P {
		t.Errorf("beside a task that could have changed, the suite's p-value %g is corrected to %g", suite.P, p)
	}
	// A task that changed shows that the suite changed.
	c = stats.Jointly([]stats.Family{{Tasks: []stats.Exact{lost(20), silent}, Suite: []stats.Exact{suite}}})
	if p := c[0].Suite[0]; !near(p, suite.P) {
		t.Errorf("beside a task that changed, the suite's p-value %g is corrected to %g", suite.P, p)
	}
	// Each further pair of runs weakens all of them.
	family := stats.Family{Tasks: []stats.Exact{lost(5), equal(5)}, Suite: []stats.Exact{suite}}
	before := stats.Corrected{Tasks: []float64{0, 0}, Suite: []float64{0}}
	for pairs := 1; pairs <= 20; pairs++ {
		c := stats.Jointly(slices.Repeat([]stats.Family{family}, pairs))
		for i := range c {
			if c[i].Tasks[0] < before.Tasks[0] || c[i].Suite[0] < before.Suite[0] || c[i].Tasks[1] != 1 {
				t.Fatalf("%d pairs: %v, with one pair less %v", pairs, c[i], before)
			}
		}
		before = c[0]
	}
	if before.Tasks[0] < 0.05 || before.Suite[0] < 0.05 {
		t.Errorf("with 20 pairs, p-values of %g and %g are corrected to %v", lost(5).P, suite.P, before)
	}
	if c := stats.Jointly(nil); len(c) != 0 {
		t.Errorf("without tests, the values are %v", c)
	}
}
