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

// RatePart describes the pass rate for a mean over tasks. Where the task could stop early, it is
// the unbiased estimate, which counts as one value.
func (s *TaskSide) RatePart() stats.Part {
	if s.Unbiased != nil {
		return stats.PartOf([]float64{s.Unbiased.PassRate})
	}
	return stats.RatePart(s.Share)
}

// ScorePart does the same for the mean score.
func (s *TaskSide) ScorePart() stats.Part {
	if s.Unbiased != nil && s.Unbiased.Score != nil {
		return stats.PartOf([]float64{*s.Unbiased.Score})
	}
	return stats.PartOf(s.Scores())
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
	// Cluster names the tasks that are not independent of this one; empty means none.
	Cluster string
	// SameRule reports whether the same rule could stop the trials of both sides early.
	SameRule bool

	Tests     []stats.Exact
	corrected []float64
	Out       []record.TaskTest
	// rated caches the contrast of the pass rates, because its interval takes long to compute.
	rated *record.Contrast
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
}

// Scores returns the scores of the counted trials.
func (s *TaskSide) Scores() []float64 {
	return append(append([]float64{}, s.Passed...), s.Other...)
}

// scoredByVerdict reports whether each counted trial has the score 1 if it passed, else 0.
func (s *TaskSide) scoredByVerdict() bool {
	isNot := func(want float64) func(float64) bool { return func(score float64) bool { return score != want } }
	return s.Share.N > 0 && len(s.Passed)+len(s.Other) == s.Share.N && !slices.ContainsFunc(s.Passed, isNot(1)) &&
		!slices.ContainsFunc(s.Other, isNot(0))
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

// Rate returns the contrast of the pass rates. All calls must use the same confidence.
func (t *ComparedTask) Rate(confidence float64) record.Contrast {
	if t.rated == nil {
		t.rated = t.contrastRates(confidence)
	}
	return *t.rated
}

func (t *ComparedTask) contrastRates(confidence float64) *record.Contrast {
	c := &record.Contrast{Reference: t.A.Share.Rate(), Run: t.B.Share.Rate()}
	c.Difference = c.Run - c.Reference
	switch {
	case t.Untestable():
	case t.CouldStop():
		i := stats.DifferenceOfSamples(t.A.asSample(), t.B.asSample(), confidence).Interval.Including(c.Difference)
		c.Interval = &i
	default:
		if e, ok := stats.DifferenceOfRates(t.A.Share, t.B.Share, confidence); ok {
			c.Interval = &e.Interval
		}
	}
	return c
}

// Score returns the contrast of the mean scores; nil when a side has none. Tasks that could stop
// early have no interval.
func (t *ComparedTask) Score(confidence float64) *record.Contrast {
	if t.A.scoredByVerdict() && t.B.scoredByVerdict() && !t.CouldStop() {
		c := t.Rate(confidence) // the same numbers
		return &c
	}
	a, b := stats.PartOf(t.A.Scores()), stats.PartOf(t.B.Scores())
	e, ok := stats.Difference([]stats.PartPair{{A: a, B: b}}, confidence)
	if !ok {
		return nil
	}
	c := &record.Contrast{Reference: a.Mean, Run: b.Mean, Difference: e.Value}
	if !t.CouldStop() {
		c.Interval = &e.Interval
	}
	return c
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
