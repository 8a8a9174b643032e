package compare

import (
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// suite compares all compared tasks together: it answers both questions, and computes means.
func (p *pairing) suite() {
	r := &p.result
	var rates, scores []stats.PartPair
	for _, t := range p.pairs {
		rates = append(rates, stats.PartPair{A: t.A.RatePart(), B: t.B.RatePart()})
		if t.result.Score != nil {
			scores = append(scores, stats.PartPair{A: t.A.ScorePart(), B: t.B.ScorePart()})
		}
	}
	rate, score := p.over(rates), p.over(scores)
	if p.tested.CouldStop() && len(p.pairs) == 1 {
		ofOnlyTask(rate, p.pairs[0].Rate(p.options.Confidence))
	}
	r.TheseTasks, r.TasksLikeThese = p.tested.Answers(rate, score, p.options.Confidence, p.options.Margin)
	verdict := p.tested.Verdict(r.TheseTasks, r.TasksLikeThese)
	r.About, r.Outcome, r.P, r.PassRate, r.Score = p.tested.About, verdict.Outcome, verdict.P, verdict.PassRate, verdict.Score
	r.Verdicts = p.verdicts()
	r.Tools = p.tools()
	r.DurationMS, r.Tokens, r.CostUSD = p.ratioOf(trialTime), p.ratioOf(trialTokens), p.ratioOf(trialCost)
	r.FirstTokenMS, r.TokensPerSecond = p.ratioOf(trialFirst), p.ratioOf(trialSpeed)
}

// tools compares the tool scores of the tasks that have them in both runs.
func (p *pairing) tools() *ToolContrasts {
	over := func(of func(*record.ToolScores) *float64) *record.Contrast {
		var a, b []float64
		for _, t := range p.pairs {
			if t.ref.tools == nil || t.run.tools == nil {
				continue
			}
			if x, y := of(t.ref.tools), of(t.run.tools); x != nil && y != nil {
				a, b = append(a, *x), append(b, *y)
			}
		}
		if len(a) == 0 {
			return nil
		}
		c := &record.Contrast{Reference: stats.Describe(a).Mean, Run: stats.Describe(b).Mean}
		c.Difference = c.Run - c.Reference
		return c
	}
	selection := over(func(s *record.ToolScores) *float64 { return &s.Selection })
	if selection == nil {
		return nil
	}
	return &ToolContrasts{
		Selection: *selection, Params: over(func(s *record.ToolScores) *float64 { return s.Params }),
		Overall: *over(func(s *record.ToolScores) *float64 { return &s.Overall }),
	}
}

// over returns the difference of the means over tasks with equal weights.
func (p *pairing) over(parts []stats.PartPair) *record.Contrast {
	mean, ok := stats.Difference(parts, p.options.Confidence)
	if !ok {
		return nil
	}
	var a, b []float64
	for _, s := range parts {
		a, b = append(a, s.A.Mean), append(b, s.B.Mean)
	}
	c := &record.Contrast{Reference: stats.Describe(a).Mean, Run: stats.Describe(b).Mean, Difference: mean.Value}
	if !slices.ContainsFunc(p.pairs, func(t *taskPair) bool { return t.Untestable() }) {
		c.Interval = &mean.Interval
	}
	return c
}

// ofOnlyTask gives the pass rate of a suite of one task that could stop early the interval of
// that task. Over several tasks, the unbiased estimate of each counts as one value, which alone
// says little.
func ofOnlyTask(suite *record.Contrast, task record.Contrast) {
	if suite.Interval == nil || task.Interval == nil {
		return
	}
	i := task.Interval.Including(suite.Difference)
	suite.Interval = &i
}

// ratioOf returns the ratio of means over the tasks for which both runs have the measure.
func (p *pairing) ratioOf(what measure) *Ratio {
	var a, b []float64
	var amounts []stats.Amounts
	for _, t := range p.pairs {
		if r := t.measures(what); r != nil {
			a, b = append(a, r.Reference), append(b, r.Run)
			amounts = append(amounts, stats.Amounts{A: t.ref.known[what], B: t.run.known[what]})
		}
	}
	if len(a) == 0 {
		return nil
	}
	r := ratio(stats.Describe(a).Mean, stats.Describe(b).Mean)
	if i, ok := stats.RatioInterval(amounts, p.options.Confidence); ok && r.Ratio != nil {
		r.Interval = &i
	}
	return r
}

// verdicts compares the verdicts of tasks.
func (p *pairing) verdicts() Verdicts {
	var v Verdicts
	for _, t := range p.pairs {
		if !t.ref.verdict.Counted() || !t.run.verdict.Counted() {
			continue
		}
		switch before, now := t.ref.verdict == record.Passed, t.run.verdict == record.Passed; {
		case before && now:
			v.BothPassed++
		case before:
			v.Lost++
		case now:
			v.Won++
		default:
			v.Neither++
		}
	}
	v.P = stats.McNemar(v.Lost, v.Won).P
	return v
}
