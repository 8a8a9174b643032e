// Package compare says what changed between runs, with tests that account for chance.
// Call [Compare] with a [Source] for each run.
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

// Options say how runs are compared. The zero value works.
type Options struct {
	// Confidence is 0.95 when zero.
	Confidence float64
	// Margin is by how much pass rates and scores may differ and still be the
	// same; 0.1 when zero.
	Margin float64
	// Tasks are globs: only tasks whose id or name matches one are compared.
	// Empty means all.
	Tasks []string
}

// ErrNothingCompared says that the runs have no task in common.
var ErrNothingCompared = errors.New("the runs have no task in common")

// Compare holds each further source against the first, task by task. Tasks are
// those of the suites, matched by id; trials count that passed, failed or took
// too long.
//
// What it says of tasks holds for all tasks of a pair of runs together: that any
// is called improved or regressed by chance is at most as likely as Confidence
// leaves. Each task has Fisher's test of its pass rates, McNemar's of the pairs of
// trials with equal number, which sees more where these share a seed, and, where
// scores say more than verdicts, a permutation test of them. All of these stand in
// one family, see [stats.Holm].
//
// The figures are the same for the same trials. Sources are read one after the
// other; of each trial a few numbers stay in memory. The error is
// [ErrNothingCompared], a [*record.SelectionError], the cause of ctx, or tells what
// cannot be read.
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
		c.Comparisons = append(c.Comparisons, *p.compare())
	}
	return c, nil
}

// pairing holds one run against the reference.
type pairing struct {
	options  Options
	ref, run *side
	pairs    []*taskPair
	needed   map[[3]float64]int // trials by rates and level, as many tasks share them
	tests    int                // of all tasks
	// everywhere: all tasks are executed otherwise.
	everywhere bool
	result     RunComparison
}

// taskPair is a task that is compared: with trials that count in both runs, and none
// that waits for a person's score.
type taskPair struct {
	tally.ComparedTask
	ref, run *sideTask
	result   TaskComparison
}

func newPairing(ref, run *side, o Options) *pairing {
	p := &pairing{options: o, ref: ref, run: run, needed: map[[3]float64]int{}, result: RunComparison{
		Run: run.head.Name, Differences: []Difference{}, Notes: []ComparisonNote{}, Tasks: []TaskComparison{},
		Uncounted: []UncountedTask{}, OnlyReference: []string{}, OnlyRun: []string{},
	}}
	wanted := plan.NewFilter(o.Tasks)
	for _, t := range ref.tasks {
		other := run.byID[t.id]
		switch {
		case !wanted.Takes(t.names()):
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
		if ref.byID[t.id] == nil && wanted.Takes(t.names()) {
			p.result.OnlyRun = append(p.result.OnlyRun, t.id)
		}
	}
	return p
}

// names are what globs are matched with.
func (t *sideTask) names() []string { return []string{t.id, t.ref.Name} }

// checkTasks finds globs that no task of any side matches: slips that would go
// unnoticed.
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
		if !slices.ContainsFunc(all, f.Takes) {
			return &record.SelectionError{What: "task", Patterns: []string{g}, Known: known}
		}
	}
	return nil
}

func newTaskPair(ref, run *sideTask) *taskPair {
	t := &taskPair{ref: ref, run: run}
	t.A, t.B, t.Pairs = ref.side(), run.side(), pairsOf(ref.trials, run.trials)
	t.Telling = tally.Telling(t.A, t.B)
	return t
}

// pairsOf compares trials of equal number; both lists are in that order.
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

// compare does all tasks, then the suite.
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

// sumUp says all that is known of a task.
func (p *pairing) sumUp(t *taskPair) {
	confidence := p.options.Confidence
	t.result = TaskComparison{
		ID: t.ref.id, Name: t.ref.ref.Name, Reference: t.ref.counts, Run: t.run.counts, Pairs: t.Pairs,
		P: t.P(), Tests: t.Out, PassRate: t.Rate(confidence), Score: t.Score(confidence),
		DurationMS: t.took(tookTime), Tokens: t.took(tookTokens), CostUSD: t.took(tookMoney),
	}
	t.result.Class, t.result.By, t.result.Equal = t.Classify(p.options.Confidence, p.options.Margin)
	if t.result.Class == record.Undecided && !t.CouldStop() {
		t.result.Needed = p.trialsNeeded(t)
	}
}

func (t *taskPair) took(what func(sideTrial) (float64, bool)) *Ratio {
	a, b := stats.Describe(t.ref.took(what)), stats.Describe(t.run.took(what))
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

// trialsNeeded says with how many trials the difference would be shown, at the level
// that the strictest of all tests is held to.
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
	n = max(n, have+1) // those there are did not decide
	return &Needed{Trials: n, More: n - have}
}
