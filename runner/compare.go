package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"waza/runner/stats"
)

// CompareOptions say how runs are compared. The zero value works.
type CompareOptions struct {
	// Confidence is 0.95 when zero.
	Confidence float64
	// Margin is by how much pass rates and scores may differ and still be the
	// same; 0.1 when zero.
	Margin float64
	// Tasks are globs: only tasks whose id or name matches one are compared.
	// Empty means all.
	Tasks []string
}

// DefaultMargin is by how much pass rates and scores may differ and still be the same.
const DefaultMargin = 0.1

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
// [ErrNothingCompared], a [*SelectionError], the cause of ctx, or tells what
// cannot be read.
func Compare(ctx context.Context, sources []Source, o CompareOptions) (*Comparison, error) {
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = stats.DefaultConfidence
	}
	if !(o.Margin > 0) {
		o.Margin = DefaultMargin
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
	options  CompareOptions
	ref, run *side
	pairs    []*taskPair
	needed   map[[3]float64]int // trials by rates and level, as many tasks share them
	// everywhere: all tasks are executed otherwise.
	everywhere bool
	result     RunComparison
}

// taskPair is a task with trials that count in both runs.
type taskPair struct {
	ref, run  *sideTask
	a, b      stats.Share
	scoresA   []float64
	scoresB   []float64
	telling   bool // scores say more than verdicts do
	tests     []stats.Exact
	corrected []float64
	out       TaskComparison
}

func newPairing(ref, run *side, o CompareOptions) *pairing {
	p := &pairing{options: o, ref: ref, run: run, needed: map[[3]float64]int{}, result: RunComparison{
		Run: run.head.Name, Differences: []Difference{}, Notes: []ComparisonNote{}, Tasks: []TaskComparison{},
		Uncounted: []UncountedTask{}, OnlyReference: []string{}, OnlyRun: []string{},
	}}
	wanted := newFilter(o.Tasks)
	for _, t := range ref.tasks {
		other := run.byID[t.id]
		switch {
		case !wanted.takes(t.names()):
		case other == nil:
			p.result.OnlyReference = append(p.result.OnlyReference, t.id)
		case len(t.trials) == 0 || len(other.trials) == 0:
			p.result.Uncounted = append(p.result.Uncounted, UncountedTask{t.id, t.counts, other.counts})
		default:
			p.pairs = append(p.pairs, newTaskPair(t, other))
		}
	}
	for _, t := range run.tasks {
		if ref.byID[t.id] == nil && wanted.takes(t.names()) {
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
		f := newFilter([]string{g})
		if !slices.ContainsFunc(all, f.takes) {
			return &SelectionError{What: "task", Patterns: []string{g}, Known: known}
		}
	}
	return nil
}

func newTaskPair(ref, run *sideTask) *taskPair {
	t := &taskPair{ref: ref, run: run, a: ref.share(), b: run.share(), scoresA: ref.scores(), scoresB: run.scores()}
	t.telling = telling(append(slices.Clone(ref.trials), run.trials...))
	t.out = TaskComparison{ID: ref.id, Name: ref.ref.Name, Reference: ref.counts, Run: run.counts, Pairs: pairsOf(ref.trials, run.trials)}
	return t
}

// telling reports whether scores say more than verdicts: whether those of trials
// that passed, or of those that did not, differ among themselves. It does not
// depend on which trial is of which run, and so favours none.
func telling(trials []sideTrial) bool {
	var first [2]*float64
	for _, t := range trials {
		if t.score == nil {
			continue
		}
		which := &first[0]
		if t.passed {
			which = &first[1]
		}
		if *which == nil {
			*which = t.score
		}
		if math.Abs(**which-*t.score) > sameNumber {
			return true
		}
	}
	return false
}

// sameNumber is how far numbers may be apart by rounding.
const sameNumber = 1e-9

// pairsOf compares trials of equal number; both lists are in that order.
func pairsOf(a, b []sideTrial) Pairs {
	var p Pairs
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
	p.test()
	for _, t := range p.pairs {
		p.classify(t)
		p.result.count(t.out.Class)
		p.result.Tasks = append(p.result.Tasks, t.out)
	}
	p.suite()
	p.differences()
	p.notes()
	return &p.result
}

func (r *RunComparison) count(c Class) {
	r.Compared++
	switch c {
	case Improved:
		r.Improved++
	case Regressed:
		r.Regressed++
	case Unchanged:
		r.Unchanged++
	case Undecided:
		r.Undecided++
	}
}
