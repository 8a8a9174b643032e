package runner

import (
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
	// Improved, Regressed and Unchanged count pairs by pass rate or, where that
	// is the same, by score.
	Improved  int `json:"improved"`
	Regressed int `json:"regressed"`
	Unchanged int `json:"unchanged"`
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
	// Interval is the bootstrap 95 % interval of the mean gain over the tasks,
	// paired; nil for a single task and with fewer than 2 pairs.
	Interval *stats.Interval `json:"interval,omitempty"`
}

// TaskBaseline compares one task. Its numbers are nil when one side has no trial
// that counts.
type TaskBaseline struct {
	ID       string `json:"id"`
	PassRate *Gain  `json:"passRate"`
	Score    *Gain  `json:"score"`
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
	counted, passed int
	scores          []float64
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
		s.counted++
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
	if !verdict.counted() {
		return
	}
	s.counted++
	if verdict == Passed {
		s.passed++
	}
	if score != nil {
		s.scores = append(s.scores, *score)
	}
}

func (s *sideTally) rate() float64 { return float64(s.passed) / float64(s.counted) }

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

func (r *BaselineResult) compare(pairs []pairTally, cell *CellRef) {
	var rates, scores gains
	for i := range pairs {
		p := &pairs[i]
		if !p.cell.in(cell) {
			continue
		}
		task := TaskBaseline{ID: p.id, With: p.with.counted, Without: p.without.counted}
		if task.With > 0 && task.Without > 0 {
			r.Pairs++
			task.PassRate = rates.add(p.with.rate(), p.without.rate())
			if len(p.with.scores) > 0 && len(p.without.scores) > 0 {
				task.Score = scores.add(stats.Describe(p.with.scores).Mean, stats.Describe(p.without.scores).Mean)
			}
			r.count(&task)
		}
		r.Tasks = append(r.Tasks, task)
	}
	r.PassRate, r.Score = rates.mean(), scores.mean()
}

// count says of a pair whether the skills made it better or worse.
func (r *BaselineResult) count(t *TaskBaseline) {
	const same = 1e-9
	gain := t.PassRate.Gain
	if gain > -same && gain < same && t.Score != nil {
		gain = t.Score.Gain
	}
	switch {
	case gain >= same:
		r.Improved++
	case gain <= -same:
		r.Regressed++
	default:
		r.Unchanged++
	}
}

// gains gathers a number of all pairs.
type gains struct{ with, without, differences []float64 }

func (g *gains) add(with, without float64) *Gain {
	d := with - without
	g.with, g.without, g.differences = append(g.with, with), append(g.without, without), append(g.differences, d)
	return &Gain{With: with, Without: without, Gain: d}
}

// mean is over the pairs. Trials of one task are no pairs: those of equal number
// have nothing in common, and a handful of them that agree would look certain.
func (g *gains) mean() *Gain {
	if len(g.differences) == 0 {
		return nil
	}
	m := &Gain{With: stats.Describe(g.with).Mean, Without: stats.Describe(g.without).Mean, Gain: stats.Describe(g.differences).Mean}
	if len(g.differences) > 1 {
		i := stats.Bootstrap(g.differences, bootstrapSeed)
		m.Interval = &i
	}
	return m
}
