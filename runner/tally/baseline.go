package tally

import (
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// comparison collects both sides of each task. The lock of its [Run] guards it.
type comparison struct {
	pairs []pairTally
	// of maps each task of the run to the number of its pair, counted from 1; 0 for none.
	of []int
}

type pairTally struct {
	id            string
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
			c.pairs = append(c.pairs, pairTally{id: t.Of, cell: t.Cell})
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
		if !g.SkillsOnly && !g.Calibrates() {
			common = append(common, g)
		}
	}
	graded := res.Verdict.Counted() || res.Verdict == record.Errored || res.Verdict == record.NeedsReview
	if !graded || len(common) == 0 {
		return
	}
	verdict, score, _ := VerdictOf(common)
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
func (t *Run) baselineResult(cell *record.Cell) *record.BaselineResult {
	if t.rec.Baseline == nil {
		return nil
	}
	r := &record.BaselineResult{Note: t.rec.Baseline.Unmeasured}
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
		t := &ComparedTask{A: p.without.TaskSide, B: p.with.TaskSide, ScoresInformative: AreScoresInformative(p.without.TaskSide, p.with.TaskSide)}
		tasks = append(tasks, t)
		task := &r.Tasks[len(r.Tasks)-1]
		task.PassRate = rates.add(t.B.rate(confidence), t.A.rate(confidence))
		if with, without := t.B.Scores(), t.A.Scores(); len(with) > 0 && len(without) > 0 {
			task.Score = scores.add(stats.MeanOf(with, confidence), stats.MeanOf(without, confidence))
		}
	}
	TestTasks(slices.DeleteFunc(slices.Clone(tasks), func(t *ComparedTask) bool { return t == nil }))
	for i, t := range tasks {
		if t != nil {
			r.Tasks[i].Class, _, _ = t.Classify(confidence, DefaultMargin)
			r.Tasks[i].P = t.P()
			r.Pairs++
			r.Add(r.Tasks[i].Class)
		}
	}
	r.PassRate, r.Score = rates.mean(), scores.mean()
}

// gains collects a number of all pairs.
type gains struct {
	with, without []float64
	gains         []stats.Estimate
}

func (g *gains) add(with, without stats.Estimate) *record.Gain {
	gain := with.Minus(without)
	g.with, g.without, g.gains = append(g.with, with.Value), append(g.without, without.Value), append(g.gains, gain)
	return &record.Gain{With: with.Value, Without: without.Value, Gain: gain.Value, Interval: &gain.Interval}
}

// mean returns the mean over the pairs; nil without pairs.
func (g *gains) mean() *record.Gain {
	gain, ok := stats.Mean(g.gains)
	if !ok {
		return nil
	}
	return &record.Gain{With: stats.Describe(g.with).Mean, Without: stats.Describe(g.without).Mean, Gain: gain.Value, Interval: &gain.Interval}
}
