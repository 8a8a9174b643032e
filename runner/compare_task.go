package runner

import (
	"math"

	"waza/runner/stats"
)

// What decides.
const (
	byPassRate = "passRate"
	byScore    = "score"
)

// power is the probability of deciding that [Needed] is about.
const power = 0.8

// comparedTask holds the counted trials of one task on two sides: of two runs, or with
// skills and without.
type comparedTask struct {
	a, b  taskSide
	pairs Pairs // of trials with equal number; zero where such have nothing in common
	// telling: scores say more than verdicts do.
	telling bool

	tests     []stats.Exact
	corrected []float64
	out       []TaskTest
}

// taskSide holds the counted trials of a task on one side.
type taskSide struct {
	share stats.Share
	// sample holds the trials up to the decision, of a task that could stop early; nil
	// of any other.
	sample *stats.Sample
	// unbiased are estimates for means over tasks.
	unbiased *Unbiased
	// untestable: which trials are missing depends on verdicts that are not known.
	untestable    bool
	passed, other []float64 // scores of trials that passed, and of the others
	// estimated is the pass rate, once it is asked for: intervals of trials that stopped
	// early take long.
	estimated *stats.Estimate
}

func (s *taskSide) scores() []float64 {
	return append(append([]float64{}, s.passed...), s.other...)
}

// rate estimates the pass rate. The confidence is the same whenever it is asked for.
func (s *taskSide) rate(confidence float64) stats.Estimate {
	if s.estimated == nil {
		e := stats.RateOf(s.share, confidence)
		if s.sample != nil {
			e.Interval = holding(s.sample.Interval(confidence), e.Value)
		}
		s.estimated = &e
	}
	return *s.estimated
}

// asSample is the sample, of a fixed number of trials if need be.
func (s *taskSide) asSample() *stats.Sample {
	if s.sample != nil {
		return s.sample
	}
	return stats.FixedSample(s.share)
}

// couldStop reports whether the number of trials depends on what became of them.
func (t *comparedTask) couldStop() bool { return t.a.sample != nil || t.b.sample != nil }

func (t *comparedTask) untestable() bool { return t.a.untestable || t.b.untestable }

// testTasks gives all tasks their tests, and corrects these for their number.
func testTasks(tasks []*comparedTask) {
	var all []stats.Exact
	for _, t := range tasks {
		t.test()
		all = append(all, t.tests...)
	}
	corrected := stats.Holm(all)
	for _, t := range tasks {
		t.corrected, corrected = corrected[:len(t.tests)], corrected[len(t.tests):]
		for i := range t.out {
			t.out[i].Corrected = t.corrected[i]
		}
	}
}

// test gives the task its tests. Where it could stop early, the trials are no plain
// sample: McNemar's pairs and scores that are dealt out at random would ignore why
// there are no more of them.
func (t *comparedTask) test() {
	t.out = []TaskTest{}
	switch {
	case t.untestable():
	case t.couldStop():
		if e, ok := stats.Samples(t.a.asSample(), t.b.asSample()); ok {
			t.add(TestStopped, e)
		}
	default:
		t.add(TestFisher, stats.Fisher(t.a.share, t.b.share))
		if t.pairs != (Pairs{}) {
			t.add(TestMcNemar, stats.McNemar(t.pairs.Worse, t.pairs.Better))
		}
		if t.telling {
			t.add(TestPermutation, stats.Permutation(t.a.scores(), t.b.scores(), stats.DefaultSeed))
		}
	}
}

func (t *comparedTask) add(name string, e stats.Exact) {
	t.tests = append(t.tests, e)
	t.out = append(t.out, TaskTest{Name: name, P: e.P})
}

// p is the least of the corrected p-values, 1 where nothing is tested.
func (t *comparedTask) p() float64 {
	p := 1.0
	for _, x := range t.corrected {
		p = min(p, x)
	}
	return p
}

// classify says what became of the task.
func (t *comparedTask) classify(confidence, margin float64) (class Class, by string, equal bool) {
	if class, by = t.shown(1 - confidence); class != "" {
		return class, by, false
	}
	rate, score := t.rate(confidence), t.score(confidence)
	tells := t.telling && score != nil
	equal = !t.untestable() && within(rate, margin) && (!tells || within(*score, margin))
	switch {
	case equal:
		return Unchanged, "", true
	case math.Abs(rate.Difference) < sameNumber && (!tells || math.Abs(score.Difference) < sameNumber):
		return NoDifference, "", false
	}
	return Undecided, "", false
}

// shown takes what the tests have shown, of pass rates before scores; no class where
// they have shown nothing.
func (t *comparedTask) shown(level float64) (Class, string) {
	best := -1
	for i, p := range t.corrected {
		switch {
		case p > level:
		case best < 0, t.out[i].Name != TestPermutation && p < t.corrected[best]:
			best = i
		}
	}
	if best < 0 {
		return "", ""
	}
	class, by := Regressed, byPassRate
	if t.tests[best].Better {
		class = Improved
	}
	if t.out[best].Name == TestPermutation {
		by = byScore
	}
	return class, by
}

// rate is the contrast of the pass rates.
func (t *comparedTask) rate(confidence float64) Contrast {
	a, b := t.a.rate(confidence), t.b.rate(confidence)
	c := *contrast(a, b)
	if t.untestable() {
		c.Interval = nil
	}
	return c
}

// score is the contrast of the mean scores; nil when a side has none. Those of tasks
// that could stop early have no interval.
func (t *comparedTask) score(confidence float64) *Contrast {
	a, b := t.a.scores(), t.b.scores()
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	c := contrast(stats.MeanOf(a, confidence), stats.MeanOf(b, confidence))
	if t.couldStop() {
		c.Interval = nil
	}
	return c
}

func contrast(ref, run stats.Estimate) *Contrast {
	d := run.Minus(ref)
	return &Contrast{Reference: ref.Value, Run: run.Value, Difference: d.Value, Interval: &d.Interval}
}

// within reports whether a difference beyond the margin is ruled out.
func within(c Contrast, margin float64) bool {
	return c.Interval != nil && c.Interval.Low >= -margin-sameNumber && c.Interval.High <= margin+sameNumber
}

// mayShow reports whether the task has enough trials for a difference, were it as large
// as can be, to be shown if it were the only one.
func (t *comparedTask) mayShow(confidence float64) bool {
	for _, e := range t.tests {
		if e.Reach(1-confidence) > 0 {
			return true
		}
	}
	a, b := t.a.share.N, t.b.share.N
	return !t.couldStop() && stats.Fisher(stats.Share{N: a}, stats.Share{Passed: b, N: b}).P <= 1-confidence
}
