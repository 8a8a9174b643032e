package tally

import (
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// DefaultMargin is the maximum difference of pass rates and scores that count as equal.
const DefaultMargin = 0.1

// AreScoresInformative reports whether scores carry more information than verdicts: whether the
// scores of passed trials, or of the other trials, differ among themselves. It does not depend
// on the assignment of trials to runs, and is therefore fair to both.
func AreScoresInformative(a, b TaskSide) bool {
	for _, scores := range [][]float64{slices.Concat(a.Passed, b.Passed), slices.Concat(a.Other, b.Other)} {
		if len(scores) > 0 && slices.Max(scores)-slices.Min(scores) > SameNumber {
			return true
		}
	}
	return false
}

// SameNumber is the maximum difference of numbers by rounding.
const SameNumber = 1e-9

// SuiteRate estimates the pass rate for a mean over tasks. The estimate is unbiased where the
// task could stop early.
func (s *TaskSide) SuiteRate(confidence float64) stats.Estimate {
	e := s.rate(confidence)
	if s.Unbiased != nil {
		e.Value = s.Unbiased.PassRate
	}
	return e
}

// SuiteScore does the same for the mean score.
func (s *TaskSide) SuiteScore(confidence float64) stats.Estimate {
	e := stats.MeanOf(s.Scores(), confidence)
	if s.Unbiased != nil && s.Unbiased.Score != nil {
		e.Value = *s.Unbiased.Score
	}
	return e
}

// The numbers that classify a task.
const (
	byPassRate = "passRate"
	byScore    = "score"
)

// Power is the probability with which a comparison shows a difference if it has the required
// number of trials.
const Power = 0.8

// ComparedTask holds the counted trials of one task on two sides: of two runs, or with and
// without skills.
type ComparedTask struct {
	A, B  TaskSide
	Pairs record.Pairs // of trials with the same number; zero where these are unrelated
	// ScoresInformative reports whether scores carry more information than verdicts
	ScoresInformative bool

	Tests     []stats.Exact
	corrected []float64
	Out       []record.TaskTest
}

// TaskSide holds the counted trials of a task on one side.
type TaskSide struct {
	Share stats.Share
	// Sample holds the trials up to the decision of a task that could stop early; nil for other
	// tasks.
	Sample *stats.Sample
	// Unbiased contains the estimates for means over tasks.
	Unbiased *record.Unbiased
	// Untestable reports whether unknown verdicts determine which trials are missing.
	Untestable    bool
	Passed, Other []float64 // scores of passed trials, and of the others
	// estimated caches the pass rate, because intervals of trials that stopped early take long
	// to compute.
	estimated *stats.Estimate
}

// Scores returns the scores of the counted trials.
func (s *TaskSide) Scores() []float64 {
	return append(append([]float64{}, s.Passed...), s.Other...)
}

// rate estimates the pass rate. All calls must use the same confidence.
func (s *TaskSide) rate(confidence float64) stats.Estimate {
	if s.estimated == nil {
		e := stats.RateOf(s.Share, confidence)
		if s.Sample != nil {
			e.Interval = holding(s.Sample.Interval(confidence), e.Value)
		}
		s.estimated = &e
	}
	return *s.estimated
}

// asSample returns the sample; without one, a sample with a fixed number of trials.
func (s *TaskSide) asSample() *stats.Sample {
	if s.Sample != nil {
		return s.Sample
	}
	return stats.FixedSample(s.Share)
}

// CouldStop reports whether the number of trials depends on their verdicts.
func (t *ComparedTask) CouldStop() bool { return t.A.Sample != nil || t.B.Sample != nil }

// Untestable reports whether one of the sides cannot be tested.
func (t *ComparedTask) Untestable() bool { return t.A.Untestable || t.B.Untestable }

// TestTasks tests all tasks, and corrects the p-values for the number of tests.
func TestTasks(tasks []*ComparedTask) {
	var all []stats.Exact
	for _, t := range tasks {
		t.test()
		all = append(all, t.Tests...)
	}
	corrected := stats.Holm(all)
	for _, t := range tasks {
		t.corrected, corrected = corrected[:len(t.Tests)], corrected[len(t.Tests):]
		for i := range t.Out {
			t.Out[i].Corrected = t.corrected[i]
		}
	}
}

// test runs the tests of the task. Where the task could stop early, the trials are not a plain
// sample. McNemar's pairs and permuted scores would ignore the reason why there are no more of
// them.
func (t *ComparedTask) test() {
	t.Out = []record.TaskTest{}
	switch {
	case t.Untestable():
	case t.CouldStop():
		if e, ok := stats.Samples(t.A.asSample(), t.B.asSample()); ok {
			t.add(record.TestStopped, e)
		}
	default:
		t.add(record.TestFisher, stats.Fisher(t.A.Share, t.B.Share))
		if t.Pairs != (record.Pairs{}) {
			t.add(record.TestMcNemar, stats.McNemar(t.Pairs.Worse, t.Pairs.Better))
		}
		if t.ScoresInformative {
			t.add(record.TestPermutation, stats.Permutation(t.A.Scores(), t.B.Scores(), stats.DefaultSeed))
		}
	}
}

func (t *ComparedTask) add(name string, e stats.Exact) {
	t.Tests = append(t.Tests, e)
	t.Out = append(t.Out, record.TaskTest{Name: name, P: e.P})
}

// P returns the smallest corrected p-value, or 1 without a test.
func (t *ComparedTask) P() float64 {
	p := 1.0
	for _, x := range t.corrected {
		p = min(p, x)
	}
	return p
}

// Classify returns the class of the task, and the number that determines it.
func (t *ComparedTask) Classify(confidence, margin float64) (class record.Class, by string, equal bool) {
	if class, by = t.shown(1 - confidence); class != "" {
		return class, by, false
	}
	rate, score := t.Rate(confidence), t.Score(confidence)
	tells := t.ScoresInformative && score != nil
	equal = !t.Untestable() && Within(rate, margin) && (!tells || Within(*score, margin))
	switch {
	case equal:
		return record.Unchanged, "", true
	case math.Abs(rate.Difference) < SameNumber && (!tells || math.Abs(score.Difference) < SameNumber):
		return record.NoDifference, "", false
	}
	return record.Undecided, "", false
}

// shown returns the class that the tests have shown, of pass rates before scores; empty when
// they have shown nothing.
func (t *ComparedTask) shown(level float64) (record.Class, string) {
	best := -1
	for i, p := range t.corrected {
		switch {
		case p > level:
		case best < 0, t.Out[i].Name != record.TestPermutation && p < t.corrected[best]:
			best = i
		}
	}
	if best < 0 {
		return "", ""
	}
	class, by := record.Regressed, byPassRate
	if t.Tests[best].Better {
		class = record.Improved
	}
	if t.Out[best].Name == record.TestPermutation {
		by = byScore
	}
	return class, by
}

// Rate returns the contrast of the pass rates.
func (t *ComparedTask) Rate(confidence float64) record.Contrast {
	a, b := t.A.rate(confidence), t.B.rate(confidence)
	c := *contrast(a, b)
	if t.Untestable() {
		c.Interval = nil
	}
	return c
}

// Score returns the contrast of the mean scores; nil when a side has none. Tasks that could stop
// early have no interval.
func (t *ComparedTask) Score(confidence float64) *record.Contrast {
	a, b := t.A.Scores(), t.B.Scores()
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	c := contrast(stats.MeanOf(a, confidence), stats.MeanOf(b, confidence))
	if t.CouldStop() {
		c.Interval = nil
	}
	return c
}

func contrast(ref, run stats.Estimate) *record.Contrast {
	d := run.Minus(ref)
	return &record.Contrast{Reference: ref.Value, Run: run.Value, Difference: d.Value, Interval: &d.Interval}
}

// Within reports whether a difference beyond the margin is ruled out.
func Within(c record.Contrast, margin float64) bool {
	return c.Interval != nil && c.Interval.Low >= -margin-SameNumber && c.Interval.High <= margin+SameNumber
}

// MayShow reports whether the task has enough trials to show the largest possible difference, if
// it were the only task.
func (t *ComparedTask) MayShow(confidence float64) bool {
	for _, e := range t.Tests {
		if e.Reach(1-confidence) > 0 {
			return true
		}
	}
	a, b := t.A.Share.N, t.B.Share.N
	return !t.CouldStop() && stats.Fisher(stats.Share{N: a}, stats.Share{Passed: b, N: b}).P <= 1-confidence
}
