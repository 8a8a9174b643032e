package runner

import (
	"slices"

	"waza/runner/grader"
	"waza/runner/stats"
)

// BaselineResult compares what the agent did with its skills and without. What
// says nothing of an agent without skills, such as skill_invocation, is left out
// on both sides: a task may count here otherwise than in its own verdict.
type BaselineResult struct {
	// Measured: at least one task can be compared. Note says why none can.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Pairs is how many tasks were compared: those with trials that count on
	// both sides.
	Pairs int `json:"pairs"`
	// PassRate and Score are means over the pairs; nil when there are none.
	PassRate *Gain `json:"passRate"`
	Score    *Gain `json:"score"`
	// The classes of the pairs mean what they do when runs are compared; the agent
	// without skills is the reference.
	ClassCounts
	// Trials counts those without skills.
	Trials Counts `json:"trials"`
	// Errors counts the trials without skills in error, and the tasks whose
	// hooks were.
	Errors int            `json:"errors"`
	Tasks  []TaskBaseline `json:"tasks,omitempty"`
}

// Gain is a number with skills and without.
type Gain struct {
	With    float64 `json:"with"`
	Without float64 `json:"without"`
	// Gain is With less Without.
	Gain float64 `json:"gain"`
	// Interval is its 95 % interval, as that of [Contrast] is.
	Interval *stats.Interval `json:"interval,omitempty"`
}

// TaskBaseline compares one task. Its numbers are nil when one side has no trial
// that counts, and while a trial waits for a person's score.
type TaskBaseline struct {
	ID string `json:"id"`
	// Class is empty when the task cannot be compared. P is the least p-value of its
	// tests, corrected for the number of all tests of all tasks.
	Class    Class   `json:"class,omitempty"`
	P        float64 `json:"p,omitempty"`
	PassRate *Gain   `json:"passRate"`
	Score    *Gain   `json:"score"`
	// With and Without are how many trials count on each side.
	With    int `json:"withTrials"`
	Without int `json:"withoutTrials"`
}

// comparison gathers both sides of each task. It is guarded by its runTally.
type comparison struct {
	pairs []pairTally
	// of gives for each task of the run the number of its pair, counted from 1; 0 for none.
	of []int
}

type pairTally struct {
	id            string
	cell          *CellRef
	with, without sideTally
}

// sideTally gathers the trials of a task on one side that count.
type sideTally struct {
	taskSide
	// waiting: a person has yet to say what comes of some trials.
	waiting bool
}

// newComparison returns nil when the run has no baselines.
func newComparison(rec *Record) *comparison {
	var c *comparison
	pairs := map[string]int{}
	for i, t := range rec.Tasks {
		switch {
		case t.Role == RoleBaseline:
			if c == nil {
				c = &comparison{of: make([]int, len(rec.Tasks))}
			}
			c.pairs = append(c.pairs, pairTally{id: t.Of, cell: t.Cell})
			c.of[i] = len(c.pairs)
			pairs[t.Of] = len(c.pairs)
		case t.Role == RoleTask && c != nil:
			c.of[i] = pairs[t.ID]
		}
	}
	return c
}

func (c *comparison) add(task int, role Role, res *TrialResult) {
	if c == nil || c.of[task] == 0 {
		return
	}
	pair := &c.pairs[c.of[task]-1]
	if role == RoleBaseline {
		pair.without.add(res)
	} else {
		pair.with.add(res)
	}
}

// add counts a trial by the graders that both sides have. One that is in error
// only by another grader counts, and one that nothing else looked at does not.
func (s *sideTally) add(res *TrialResult) {
	if res.Verdict == TimedOut {
		s.share.N++
		s.other = append(s.other, 0)
		return
	}
	var common []grader.Result
	for _, g := range res.Graders {
		if !g.SkillsOnly && !g.Calibrates() {
			common = append(common, g)
		}
	}
	graded := res.Verdict.counted() || res.Verdict == Errored || res.Verdict == NeedsReview
	if !graded || len(common) == 0 {
		return
	}
	verdict, score, _ := verdictOf(common)
	if verdict == NeedsReview {
		s.waiting = true
	}
	if !verdict.counted() {
		return
	}
	s.share.N++
	scores := &s.other
	if verdict == Passed {
		s.share.Passed++
		scores = &s.passed
	}
	if score != nil {
		*scores = append(*scores, *score)
	}
}

func (s *sideTally) comparable() bool { return s.share.N > 0 && !s.waiting }

// baselineResult sums up the comparison, in one cell or, with nil, in all; nil when
// the suite asks for none.
func (t *runTally) baselineResult(cell *CellRef) *BaselineResult {
	if t.rec.Baseline == nil {
		return nil
	}
	r := &BaselineResult{Note: t.rec.Baseline.Unmeasured}
	for i := range t.rec.Tasks {
		res := t.tasks[i]
		if t.rec.Tasks[i].Role != RoleBaseline || res == nil || !t.rec.Tasks[i].Cell.in(cell) {
			continue
		}
		r.Trials.add(res.Trials.Counts)
		r.Errors += res.Trials.Errors
		if res.Verdict == Errored && res.Trials.Errors == 0 {
			r.Errors++
		}
	}
	if t.compared != nil {
		r.compare(t.compared.pairs, cell)
	}
	r.Measured = r.Pairs > 0
	if !r.Measured && r.Note == "" {
		r.Note = "not measured: no task has trials on both sides that a grader looked at"
	}
	return r
}

// compare classifies the tasks as [Compare] does, and takes means over them. Trials
// of equal number have nothing in common, so none are paired.
func (r *BaselineResult) compare(pairs []pairTally, cell *CellRef) {
	const confidence = stats.DefaultConfidence
	var tasks []*comparedTask
	var rates, scores gains
	for i := range pairs {
		p := &pairs[i]
		if !p.cell.in(cell) {
			continue
		}
		r.Tasks = append(r.Tasks, TaskBaseline{ID: p.id, With: p.with.share.N, Without: p.without.share.N})
		if !p.with.comparable() || !p.without.comparable() {
			tasks = append(tasks, nil)
			continue
		}
		t := &comparedTask{a: p.without.taskSide, b: p.with.taskSide, telling: telling(p.without.taskSide, p.with.taskSide)}
		tasks = append(tasks, t)
		task := &r.Tasks[len(r.Tasks)-1]
		task.PassRate = rates.add(t.b.rate(confidence), t.a.rate(confidence))
		if with, without := t.b.scores(), t.a.scores(); len(with) > 0 && len(without) > 0 {
			task.Score = scores.add(stats.MeanOf(with, confidence), stats.MeanOf(without, confidence))
		}
	}
	testTasks(slices.DeleteFunc(slices.Clone(tasks), func(t *comparedTask) bool { return t == nil }))
	for i, t := range tasks {
		if t != nil {
			r.Tasks[i].Class, _, _ = t.classify(confidence, DefaultMargin)
			r.Tasks[i].P = t.p()
			r.Pairs++
			r.add(r.Tasks[i].Class)
		}
	}
	r.PassRate, r.Score = rates.mean(), scores.mean()
}

// gains gathers a number of all pairs.
type gains struct {
	with, without []float64
	gains         []stats.Estimate
}

func (g *gains) add(with, without stats.Estimate) *Gain {
	gain := with.Minus(without)
	g.with, g.without, g.gains = append(g.with, with.Value), append(g.without, without.Value), append(g.gains, gain)
	return &Gain{With: with.Value, Without: without.Value, Gain: gain.Value, Interval: &gain.Interval}
}

// mean is over the pairs; nil when there are none.
func (g *gains) mean() *Gain {
	gain, ok := stats.Mean(g.gains)
	if !ok {
		return nil
	}
	return &Gain{With: stats.Describe(g.with).Mean, Without: stats.Describe(g.without).Mean, Gain: gain.Value, Interval: &gain.Interval}
}
