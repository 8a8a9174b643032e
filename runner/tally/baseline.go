package tally

import (
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// comparison collects both sides of each task.
type comparison struct {
	pairs []pairTally
	// of maps each task of the run to the number of its pair, counted from 1; 0 for none.
	of []int
}

type pairTally struct {
	id, cluster   string
	cell          *record.Cell
	with, without sideTally
}

// sideTally collects the counted trials of a task on one side.
type sideTally struct {
	TaskSide
	// waiting reports whether some trials wait for a person's score.
	waiting bool
}

// newComparison returns nil when the run has no baselines.
func newComparison(rec *record.Run) *comparison {
	var c *comparison
	pairs := map[string]int{}
	for i, t := range rec.Tasks {
		switch {
		case t.Role == record.RoleBaseline:
			if c == nil {
				c = &comparison{of: make([]int, len(rec.Tasks))}
			}
			c.pairs = append(c.pairs, pairTally{id: t.Of, cluster: t.Cluster, cell: t.Cell})
			c.of[i] = len(c.pairs)
			pairs[t.Of] = len(c.pairs)
		case t.Role == record.RoleTask && c != nil:
			c.of[i] = pairs[t.ID]
		}
	}
	return c
}

func (c *comparison) add(task int, role record.Role, res *record.Trial) {
	if c == nil || c.of[task] == 0 {
		return
	}
	pair := &c.pairs[c.of[task]-1]
	if role == record.RoleBaseline {
		pair.without.add(res)
	} else {
		pair.with.add(res)
	}
}

// add counts a trial according to the graders that both sides have. A trial that is in error
// only because of another grader counts. A trial that only other graders graded does not.
func (s *sideTally) add(res *record.Trial) {
	if res.Verdict == record.TimedOut {
		s.Share.N++
		s.Other = append(s.Other, 0)
		return
	}
	var common []record.Grade
	for _, g := range res.Graders {
		if !g.SkillsOnly && g.Counts() {
			common = append(common, g)
		}
	}
	graded := res.Verdict.Counted() || res.Verdict == record.Errored || res.Verdict == record.NeedsReview
	if !graded || len(common) == 0 {
		return
	}
	verdict, score, _ := VerdictOf(common, res.ScoreThreshold)
	if verdict == record.NeedsReview {
		s.waiting = true
	}
	if !verdict.Counted() {
		return
	}
	s.Share.N++
	scores := &s.Other
	if verdict == record.Passed {
		s.Share.Passed++
		scores = &s.Passed
	}
	if score != nil {
		*scores = append(*scores, *score)
	}
}

func (s *sideTally) comparable() bool { return s.Share.N > 0 && !s.waiting }

// baselineResult summarizes the comparison in one cell or, with nil, in all. It returns nil when
// the suite requests none.
func (t *summing) baselineResult(cell *record.Cell) *record.BaselineResult {
	if t.rec.Baseline == nil {
		return nil
	}
	r := &record.BaselineResult{Arm: t.rec.Baseline.Arm(), Against: t.rec.Baseline.Against, Note: t.rec.Baseline.Unmeasured}
	for i := range t.rec.Tasks {
		res := t.tasks[i]
		if t.rec.Tasks[i].Role != record.RoleBaseline || res == nil || !t.rec.Tasks[i].Cell.In(cell) {
			continue
		}
		r.Trials.Merge(res.Trials.Counts)
		r.Errors += res.Trials.Errors
		if res.Verdict == record.Errored && res.Trials.Errors == 0 {
			r.Errors++
		}
	}
	if t.compared != nil {
		compareSides(r, t.compared.pairs, cell)
	}
	r.Measured = r.Pairs > 0
	if !r.Measured && r.Note == "" {
		r.Note = "not measured: no task has graded trials on both sides"
	}
	return r
}

// compareSides classifies the tasks like [waza/runner/compare.Compare], and computes means over
// them. Trials with the same number are unrelated, so none are paired.
func compareSides(r *record.BaselineResult, pairs []pairTally, cell *record.Cell) {
	const confidence = stats.DefaultConfidence
	var tasks []*ComparedTask
	var rates, scores gains
	for i := range pairs {
		p := &pairs[i]
		if !p.cell.In(cell) {
			continue
		}
		r.Tasks = append(r.Tasks, record.TaskBaseline{ID: p.id, With: p.with.Share.N, Without: p.without.Share.N})
		if !p.with.comparable() || !p.without.comparable() {
			tasks = append(tasks, nil)
			continue
		}
		t := &ComparedTask{
			A: p.without.TaskSide, B: p.with.TaskSide,
			Cluster:           p.cluster,
			ScoresInformative: AreScoresInformative(p.without.TaskSide, p.with.TaskSide),
		}
		tasks = append(tasks, t)
		task := &r.Tasks[len(r.Tasks)-1]
		task.PassRate = rates.add(t, t.Rate(confidence), (*TaskSide).RatePart)
		if score := t.Score(confidence); score != nil {
			task.Score = scores.add(t, *score, (*TaskSide).ScorePart)
		}
	}
	suite := NewComparedSuite(slices.DeleteFunc(slices.Clone(tasks), func(t *ComparedTask) bool { return t == nil }), confidence)
	Correct(confidence, "", suite)
	for i, t := range tasks {
		if t != nil {
			r.Tasks[i].Class, _, _ = t.Classify(confidence, DefaultMargin)
			r.Tasks[i].P = t.P()
			r.Pairs++
			r.Add(r.Tasks[i].Class)
		}
	}
	r.PassRate, r.Score = rates.mean(confidence), scores.mean(confidence)
	if r.Pairs == 0 {
		return
	}
	these, like := suite.Answers(contrastOf(r.PassRate), contrastOf(r.Score), confidence, DefaultMargin)
	verdict := suite.Verdict(these, like)
	r.About, r.Outcome, r.P, r.TheseTasks, r.TasksLikeThese = suite.About, verdict.Outcome, verdict.P, &these, &like
	r.PassRate, r.Score = withInterval(r.PassRate, verdict.PassRate), withInterval(r.Score, verdict.Score)
	if these.Outcome == record.OutcomeUndecided {
		r.Needed = suite.needed(r.PassRate.Gain, confidence)
	}
}

// OutcomesTogether returns the outcomes of suites that decide together, such as those of one
// command. A suite is worse only if its p-value is low enough after [stats.Holm] corrected it for
// the number of measured suites; otherwise it is undecided. If no skill has an effect, some suite
// is worse with a probability of at most 2.5 %, whatever their number is. Each is corrected for the question of its verdict. Other outcomes do not
// change: a command that requires all suites to be better needs no correction, because each of
// them must pass its own test. nil results are suites without a baseline; their outcome is empty.
func OutcomesTogether(results []*record.BaselineResult) []record.Outcome {
	var tests []stats.Exact
	for _, r := range results {
		if r != nil && r.Measured {
			tests = append(tests, stats.Exact{P: r.P})
		}
	}
	corrected := stats.Holm(tests)
	outcomes := make([]record.Outcome, len(results))
	for i, r := range results {
		if r == nil {
			continue
		}
		outcomes[i] = r.Outcome
		if !r.Measured {
			continue
		}
		if r.Outcome == record.OutcomeWorse && corrected[0] > 1-stats.DefaultConfidence+SameNumber {
			outcomes[i] = record.OutcomeUndecided
		}
		corrected = corrected[1:]
	}
	return outcomes
}

// contrastOf returns a gain as a contrast, with the baseline as the reference.
func contrastOf(g *record.Gain) *record.Contrast {
	if g == nil {
		return nil
	}
	return &record.Contrast{Reference: g.Without, Run: g.With, Difference: g.Gain, Interval: g.Interval}
}

// withInterval returns a gain with the interval of the contrast.
func withInterval(g *record.Gain, c *record.Contrast) *record.Gain {
	if g == nil || c == nil {
		return g
	}
	x := *g
	x.Interval = c.Interval
	return &x
}

// gains collects a number of all pairs.
type gains struct {
	with, without []float64
	pairs         []stats.PartPair
}

func (g *gains) add(t *ComparedTask, c record.Contrast, of func(*TaskSide) stats.Part) *record.Gain {
	g.with, g.without = append(g.with, c.Run), append(g.without, c.Reference)
	g.pairs = append(g.pairs, stats.PartPair{A: of(&t.A), B: of(&t.B)})
	return &record.Gain{With: c.Run, Without: c.Reference, Gain: c.Difference, Interval: c.Interval}
}

// mean returns the mean over the pairs; nil without pairs.
func (g *gains) mean(confidence float64) *record.Gain {
	gain, ok := stats.Difference(g.pairs, confidence)
	if !ok {
		return nil
	}
	return &record.Gain{With: stats.Describe(g.with).Mean, Without: stats.Describe(g.without).Mean, Gain: gain.Value, Interval: &gain.Interval}
}
