// Package compare compares runs with statistical tests that account for chance. Call [Compare]
// with a [Source] for each run.
package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// Options control a comparison. The zero value works.
type Options struct {
	// Confidence is the confidence of tests and intervals; 0 means 0.95.
	Confidence float64
	// Margin is the largest difference of pass rates and scores that still counts as the same; 0
	// means 0.1.
	Margin float64
	// Tasks are globs: only tasks whose id or name matches one are compared. Empty means all
	// tasks.
	Tasks []string
	// Policies apply to each further run; nil means none.
	Policies *Policies
}

// ErrNothingCompared means that the runs have no task in common.
var ErrNothingCompared = errors.New("the runs have no task in common")

// Compare compares each further source with the first, task by task. It matches the suites'
// tasks by id, and counts trials that passed, failed or timed out.
//
// The classes of all tasks of a pair of runs hold together: the probability that any unchanged
// task is called improved or regressed is at most 1 - Confidence. Each task has Fisher's test of
// its pass rates. It also has McNemar's test of the pairs of trials with equal number, which is
// more powerful if these share a seed. If scores contain more information than verdicts, it has
// a permutation test of the scores. All these tests are in one family, see [stats.Holm].
//
// The figures are the same for the same trials. Compare reads the sources one after the other,
// and keeps a few numbers of each trial in memory. The error is [ErrNothingCompared], a
// [*record.SelectionError], the cause of ctx, or an error of reading a source.
func Compare(ctx context.Context, sources []Source, o Options) (*Comparison, error) {
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = stats.DefaultConfidence
	}
	if !(o.Margin > 0) {
		o.Margin = tally.DefaultMargin
	}
	c := &Comparison{Confidence: o.Confidence, Margin: o.Margin, Runs: []ComparedRun{}, Comparisons: []RunComparison{}}
	var sides []*side
	for _, s := range sources {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		sd, err := s.side()
		if err != nil {
			return nil, err
		}
		sides = append(sides, sd)
		c.Runs = append(c.Runs, sd.head)
	}
	if err := checkTasks(o.Tasks, sides); err != nil {
		return nil, err
	}
	for _, sd := range sides[min(1, len(sides)):] {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := newPairing(sides[0], sd, o)
		if len(p.pairs)+len(p.result.Uncounted) == 0 {
			return nil, fmt.Errorf("%w: %s and %s", ErrNothingCompared, sides[0].head.Name, sd.head.Name)
		}
		result := p.compare()
		if o.Policies != nil {
			result.Policies = p.policies(o.Policies)
		}
		c.Comparisons = append(c.Comparisons, *result)
	}
	return c, nil
}

// A pairing compares one run with the reference.
type pairing struct {
	options  Options
	wanted   interface{ Matches(names []string) bool }
	ref, run *side
	pairs    []*taskPair
	needed   map[[3]float64]int // trials by rates and level, because many tasks have the same
	tests    int                // of all tasks
	// everywhere reports whether the execution of all tasks changed.
	everywhere bool
	result     RunComparison
}

// A taskPair is a compared task: both runs have trials of it that count, and no trial waits for
// a person's score.
type taskPair struct {
	tally.ComparedTask
	ref, run *sideTask
	result   TaskComparison
}

func newPairing(ref, run *side, o Options) *pairing {
	p := &pairing{options: o, wanted: plan.NewFilter(o.Tasks), ref: ref, run: run, needed: map[[3]float64]int{}, result: RunComparison{
		Run: run.head.Name, Differences: []Difference{}, Notes: []ComparisonNote{}, Tasks: []TaskComparison{},
		Uncounted: []UncountedTask{}, OnlyReference: []string{}, OnlyRun: []string{},
	}}
	for _, t := range ref.tasks {
		other := run.byID[t.id]
		switch {
		case !p.wanted.Matches(t.names()):
		case other == nil:
			p.result.OnlyReference = append(p.result.OnlyReference, t.id)
		case !t.comparable() || !other.comparable():
			p.result.Uncounted = append(p.result.Uncounted, UncountedTask{
				ID: t.id, Reference: t.counts, Run: other.counts,
				ReferenceBounds: tally.RateOf(t.counts).PassRateBounds, RunBounds: tally.RateOf(other.counts).PassRateBounds,
			})
		default:
			p.pairs = append(p.pairs, newTaskPair(t, other))
		}
	}
	for _, t := range run.tasks {
		if ref.byID[t.id] == nil && p.wanted.Matches(t.names()) {
			p.result.OnlyRun = append(p.result.OnlyRun, t.id)
		}
	}
	return p
}

// names returns the texts that globs can match.
func (t *sideTask) names() []string { return []string{t.id, t.ref.Name} }

// checkTasks returns an error for globs that match no task of any side. Such mistakes would
// otherwise go unnoticed.
func checkTasks(globs []string, sides []*side) error {
	var all [][]string
	var known []string
	seen := map[string]bool{}
	for _, s := range sides {
		for _, t := range s.tasks {
			all = append(all, t.names())
			if !seen[t.id] {
				seen[t.id] = true
				known = append(known, t.id)
			}
		}
	}
	for _, g := range globs {
		f := plan.NewFilter([]string{g})
		if !slices.ContainsFunc(all, f.Matches) {
			return &record.SelectionError{What: "task", Patterns: []string{g}, Known: known}
		}
	}
	return nil
}

func newTaskPair(ref, run *sideTask) *taskPair {
	t := &taskPair{ref: ref, run: run}
	t.A, t.B, t.Pairs = ref.side(), run.side(), pairsOf(ref.trials, run.trials)
	t.ScoresInformative = tally.AreScoresInformative(t.A, t.B)
	return t
}

// pairsOf compares trials of equal number; both lists are sorted by number.
func pairsOf(a, b []sideTrial) record.Pairs {
	var p record.Pairs
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].num < b[j].num:
			i++
			continue
		case a[i].num > b[j].num:
			j++
			continue
		case a[i].passed == b[j].passed:
			p.Same++
		case a[i].passed:
			p.Worse++
		default:
			p.Better++
		}
		i, j = i+1, j+1
	}
	return p
}

// compare compares all tasks, then the suite.
func (p *pairing) compare() *RunComparison {
	tasks := make([]*tally.ComparedTask, len(p.pairs))
	for i, t := range p.pairs {
		tasks[i] = &t.ComparedTask
	}
	tally.TestTasks(tasks)
	p.result.Compared = len(tasks)
	for _, t := range p.pairs {
		p.tests += len(t.Tests)
	}
	for _, t := range p.pairs {
		p.sumUp(t)
		p.result.Add(t.result.Class)
		p.result.Tasks = append(p.result.Tasks, t.result)
	}
	p.suite()
	p.differences()
	p.notes()
	return &p.result
}

// sumUp fills in the result of a task.
func (p *pairing) sumUp(t *taskPair) {
	confidence := p.options.Confidence
	t.result = TaskComparison{
		ID: t.ref.id, Name: t.ref.ref.Name, Reference: t.ref.counts, Run: t.run.counts, Pairs: t.Pairs,
		P: t.P(), Tests: t.Out, PassRate: t.Rate(confidence), Score: t.Score(confidence),
		DurationMS: t.measures(trialTime), Tokens: t.measures(trialTokens), CostUSD: t.measures(trialCost),
	}
	t.result.Class, t.result.By, t.result.Equal = t.Classify(p.options.Confidence, p.options.Margin)
	if t.result.Class == record.Undecided && !t.CouldStop() {
		t.result.Needed = p.trialsNeeded(t)
	}
}

func (t *taskPair) measures(what func(sideTrial) (float64, bool)) *Ratio {
	a, b := stats.Describe(t.ref.measures(what)), stats.Describe(t.run.measures(what))
	if a.N == 0 || b.N == 0 {
		return nil
	}
	return ratio(a.Mean, b.Mean)
}

func ratio(ref, run float64) *Ratio {
	r := &Ratio{Reference: ref, Run: run}
	if x := run / ref; ref > 0 && !math.IsInf(x, 0) {
		r.Ratio = &x
	}
	return r
}

// trialsNeeded returns the number of trials that would show the difference, at the level of the
// strictest of all tests. It returns nil if a run has fewer than two trials.
func (p *pairing) trialsNeeded(t *taskPair) *Needed {
	have := min(t.A.Share.N, t.B.Share.N)
	if have < 2 {
		return nil
	}
	level := (1 - p.options.Confidence) / float64(p.tests)
	var n int
	var ok bool
	if math.Abs(t.result.PassRate.Difference) < tally.SameNumber {
		n, ok = stats.ScoreTrialsNeeded(t.result.Score.Difference, stats.Describe(t.A.Scores()).StdDev, stats.Describe(t.B.Scores()).StdDev, level, tally.Power)
	} else {
		key := [3]float64{t.A.Share.Rate(), t.B.Share.Rate(), level}
		if _, known := p.needed[key]; !known {
			p.needed[key], _ = stats.TrialsNeeded(key[0], key[1], level, tally.Power)
		}
		n = p.needed[key]
		ok = n > 0
	}
	if !ok {
		return &Needed{}
	}
	n = max(n, have+1) // the present trials did not decide
	return &Needed{Trials: n, More: n - have}
}
