// Package compare compares runs with statistical tests that account for chance. Call [Compare]
// with a [Source] for each run, or [CompareSuites] for runs of several suites.
package compare

import (
	"cmp"
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
	// OnCollapsedTasks is the value of [Comparison.OnCollapsedTasks]. Empty means fail for one run
	// against its reference, and warn for several runs or the cells of one.
	OnCollapsedTasks OnTasks
	// Policies apply to each further run; nil means none.
	Policies *Policies
	// About is the question of the verdict. Empty means tasks like these, or these tasks where there
	// are too few tasks for the former.
	About record.Question
	// Ledger counts the comparisons with each baseline; nil counts nothing.
	Ledger Ledger
	// AcceptDamaged also compares runs with a damaged record, without its lost parts, and runs
	// whose record nobody can verify.
	AcceptDamaged bool
}

// A DamagedError refuses to compare a run, because a part of its record is lost, waza did not
// write it, or nobody knows whether waza wrote it.
type DamagedError struct {
	RunID  string
	Damage *record.Damage
}

func (e *DamagedError) Error() string {
	if !e.Damage.Damaged() {
		return fmt.Sprintf("run %s is not compared, because its record cannot be verified: %s", e.RunID, e.Damage.Unverifiable)
	}
	return fmt.Sprintf("run %s is not compared, because its record is damaged: %v", e.RunID, e.Damage)
}

// ErrNothingCompared means that the runs have no task in common.
var ErrNothingCompared = errors.New("the runs have no task in common")

// Compare compares each further source with the first, task by task. It matches the suites'
// tasks by id, and counts trials that passed, failed or timed out.
//
// Outcomes hold together over all further sources, and classes over all their tasks. If nothing
// changed, the probability that any run is called better or worse is at most 1 - Confidence, and so
// is the probability that any task is called improved or regressed. Half of it is for either
// direction, so the probability of any wrong regression, of a run or a task, is at most
// 1 - Confidence. Each task has Fisher's test of its pass rates. It also has McNemar's test of the
// pairs of trials with equal number, which is more powerful if these share a seed. If scores contain
// more information than verdicts, it has a permutation test of the scores. [tally.Correct] corrects
// these tests, and those of the suites. With a ledger, all of this also holds for all comparisons
// with a baseline together.
//
// The figures are the same for the same trials. Compare reads several runs at once, but each only
// once, and keeps a few numbers of each trial in memory. The error is [ErrNothingCompared], a
// [*record.SelectionError], a [*DamagedError], the cause of ctx, or an error of reading a source.
func Compare(ctx context.Context, sources []Source, o Options) (*Comparison, error) {
	return CompareSuites(ctx, [][]Source{sources}, o)
}

// CompareSuites is like [Compare] for several suites: in each of them, it compares the further
// sources with the first. The correction covers all suites together. A suite whose runs have no
// task in common is part of the result, without compared tasks; the error is
// [ErrNothingCompared] if that holds for all suites. A suite without a task that matches
// [Options.Tasks] is left out.
func CompareSuites(ctx context.Context, suites [][]Source, o Options) (*Comparison, error) {
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = stats.DefaultConfidence
	}
	if !(o.Margin > 0) {
		o.Margin = tally.DefaultMargin
	}
	c := &Comparison{
		Confidence: o.Confidence, Margin: o.Margin, OnCollapsedTasks: o.OnCollapsedTasks, Runs: []ComparedRun{},
		Comparisons: []RunComparison{},
	}
	groups, err := readSuites(ctx, suites, o)
	if err != nil {
		return nil, err
	}
	c.OnCollapsedTasks = cmp.Or(c.OnCollapsedTasks, effectOfCollapse(groups))
	var pairings []*pairing
	var tested []*tally.ComparedSuite
	var nothing error
	for _, sides := range groups {
		var own []*pairing
		chosen := len(sides) < 2 || len(o.Tasks) == 0
		for _, sd := range sides[min(1, len(sides)):] {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			p := newPairing(sides[0], sd, o)
			own, chosen = append(own, p), chosen || p.comparable() || len(p.result.OnlyReference)+len(p.result.OnlyRun) > 0
			if !p.comparable() {
				nothing = cmp.Or(nothing, fmt.Errorf("%w: %s and %s", ErrNothingCompared, sides[0].head.Name, sd.head.Name))
				if len(groups) == 1 {
					return nil, nothing
				}
			}
		}
		if !chosen {
			continue
		}
		for _, sd := range sides {
			c.Runs = append(c.Runs, sd.head)
		}
		place := ask(o, own)
		for i, p := range own {
			p.first = i == 0
			p.test(place)
			pairings, tested = append(pairings, p), append(tested, p.tested)
		}
	}
	if nothing != nil && !slices.ContainsFunc(pairings, (*pairing).comparable) {
		return nil, nothing
	}
	tally.Correct(o.Confidence, o.About, tested...)
	tests := 0
	for _, s := range tested {
		tests += s.Tests()
	}
	needed := map[[3]float64]int{}
	for _, p := range pairings {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.tests, p.needed = tests, needed
		result := p.compare()
		if o.Policies != nil {
			result.Policies = p.policies(o.Policies)
		}
		c.Comparisons = append(c.Comparisons, *result)
	}
	return c, nil
}

// readSuites reads the sources of each suite.
func readSuites(ctx context.Context, suites [][]Source, o Options) ([][]*side, error) {
	var runs reading
	groups := make([][]*side, len(suites))
	for i, sources := range suites {
		for _, s := range sources {
			groups[i] = append(groups[i], s.side(&runs))
		}
	}
	runs.read(ctx)
	all := slices.Concat(groups...)
	for _, sd := range all {
		if sd.read != nil && sd.read.err != nil {
			return nil, sd.read.err
		}
		if sd.head.Damage != nil && !o.AcceptDamaged {
			return nil, &DamagedError{RunID: sd.head.RunID, Damage: sd.head.Damage}
		}
	}
	return groups, checkTasks(o.Tasks, all)
}

// A pairing compares one run with the reference. It owns the pairs of tasks and the result.
type pairing struct {
	options  Options
	wanted   interface{ Matches(names []string) bool }
	ref, run *side
	pairs    []*taskPair
	tested   *tally.ComparedSuite
	needed   map[[3]float64]int // trials by rates and level, of all pairings, because many tasks have the same
	tests    int                // of all tasks of all pairings
	first    bool               // of the pairings with this reference
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
	p := &pairing{options: o, wanted: plan.NewFilter(o.Tasks), ref: ref, run: run, result: RunComparison{
		Reference: ref.head.Name, Run: run.head.Name, Differences: []Difference{}, Notes: []ComparisonNote{}, Tasks: []TaskComparison{},
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

// comparable reports whether the runs have tasks in common.
func (p *pairing) comparable() bool { return len(p.pairs)+len(p.result.Uncounted) > 0 }

// names returns the texts that globs can match.
func (t *sideTask) names() []string { return []string{t.id, t.ref.Name} }

// checkTasks returns an error for globs that match no task of any side.
func checkTasks(globs []string, sides []*side) error {
	var all []*sideTask
	var known []string
	seen := map[string]bool{}
	for _, s := range sides {
		for _, t := range s.tasks {
			all = append(all, t)
			if !seen[t.id] {
				seen[t.id] = true
				known = append(known, t.id)
			}
		}
	}
	return plan.CheckPatterns("task", globs, all, (*sideTask).names, known)
}

func newTaskPair(ref, run *sideTask) *taskPair {
	t := &taskPair{ref: ref, run: run}
	t.A, t.B, t.Pairs = ref.side(), run.side(), pairsOf(ref.trials, run.trials)
	t.ScoresInformative = tally.AreScoresInformative(t.A, t.B)
	t.Cluster = cmp.Or(run.ref.Cluster, ref.ref.Cluster)
	t.SameRule = tally.RuleOf(&ref.ref) == tally.RuleOf(&run.ref)
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

// test tests all tasks and both questions. The p-values are not corrected yet. place is nil if
// nobody counts the comparisons.
func (p *pairing) test(place *Place) {
	tasks := make([]*tally.ComparedTask, len(p.pairs))
	for i, t := range p.pairs {
		tasks[i] = &t.ComparedTask
	}
	p.tested = tally.NewComparedSuite(tasks, p.options.Confidence)
	if p.tested.Open = p.active(); place != nil && !p.tested.Open {
		p.tested.Weight, p.result.Comparison = place.Weight, place
	}
}

// active reports whether one of the runs is still running. Its results are then no sample of which
// the size was fixed before.
func (p *pairing) active() bool {
	return p.ref.head.Status == record.StatusRunning || p.run.head.Status == record.StatusRunning
}

// compare sums up all tasks, then the suite.
func (p *pairing) compare() *RunComparison {
	p.result.Compared, p.result.Active = len(p.pairs), p.tested.Open
	for _, t := range p.pairs {
		p.sumUp(t)
		p.result.Add(t.result.Class)
		p.result.Tasks = append(p.result.Tasks, t.result)
	}
	p.shrink()
	p.suite()
	p.differences()
	p.result.Notes = append(p.result.Notes, (&remarks{pairing: p}).all()...)
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
	if p.tested.Open && t.result.Equal { // no verdict
		t.result.Class, t.result.Equal = record.Undecided, false
		if math.Abs(t.result.PassRate.Difference) < tally.SameNumber {
			t.result.Class = record.NoDifference
		}
	}
	t.result.Collapsed = !p.tested.Open && t.collapsed(t.result.Class)
	if t.result.Class == record.Undecided && !t.CouldStop() && !p.tested.Open {
		t.result.Needed = p.trialsNeeded(t)
	}
}

func (t *taskPair) measures(what measure) *Ratio {
	a, b := stats.Describe(t.ref.known[what]), stats.Describe(t.run.known[what])
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

// strictest returns the level of the strictest test of a task of this run.
func (p *pairing) strictest() float64 {
	level := (1 - p.options.Confidence) / float64(max(1, p.tests))
	if c := p.result.Comparison; c != nil {
		level *= c.Weight
	}
	return level
}

// trialsNeeded returns the number of trials that would show the difference, at the strictest
// level. It returns nil if a run has fewer than two trials.
func (p *pairing) trialsNeeded(t *taskPair) *record.Needed {
	have := min(t.A.Share.N, t.B.Share.N)
	if have < 2 {
		return nil
	}
	level := p.strictest()
	var n int
	var ok bool
	if math.Abs(t.result.PassRate.Difference) < tally.SameNumber {
		n, ok = stats.ScoreTrialsNeeded(t.result.Score.Difference, stats.Describe(t.A.Scores()).StdDev,
			stats.Describe(t.B.Scores()).StdDev, level, tally.Power)
	} else {
		key := [3]float64{t.A.Share.Rate(), t.B.Share.Rate(), level}
		if _, known := p.needed[key]; !known {
			p.needed[key], _ = stats.TrialsNeeded(key[0], key[1], level, tally.Power)
		}
		n = p.needed[key]
		ok = n > 0
	}
	if !ok {
		return &record.Needed{}
	}
	n = max(n, have+1) // the present trials did not decide
	return &record.Needed{Trials: n, More: n - have}
}
