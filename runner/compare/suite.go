package compare

import (
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// suite compares the suite as a whole, that is, all compared tasks. It tests whether any of them
// changed, with the sum of all changes, and computes the mean difference.
func (p *pairing) suite() {
	r := &p.result
	var rates, scores []suitePart
	var strata []stats.Stratum
	var dealt []stats.Scores
	telling, stopping := false, false
	for _, t := range p.pairs {
		strata = append(strata, stats.Stratum{A: t.A.Share, B: t.B.Share})
		telling, stopping = telling || t.ScoresInformative, stopping || t.CouldStop()
		rates = append(rates, suitePart{t.A.SuiteRate(p.options.Confidence), t.B.SuiteRate(p.options.Confidence)})
		if t.result.Score != nil {
			scores = append(scores, suitePart{t.A.SuiteScore(p.options.Confidence), t.B.SuiteScore(p.options.Confidence)})
			dealt = append(dealt, stats.Scores{A: t.A.Scores(), B: t.B.Scores()})
		}
	}
	r.PassRate, r.Score = p.over(rates, stopping), p.over(scores, stopping)
	if stopping {
		p.outcome(p.stoppedTests(telling), telling)
	} else {
		tests := []stats.Exact{stats.MantelHaenszel(strata)}
		if telling {
			tests = append(tests, stats.PermutationStrata(dealt, stats.DefaultSeed))
		}
		p.outcome(tests, telling)
	}
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

// A suitePart is the contribution of a task to a mean over tasks.
type suitePart struct{ a, b stats.Estimate }

// over returns the mean over tasks with equal weights.
func (p *pairing) over(parts []suitePart, stopping bool) *record.Contrast {
	if len(parts) == 0 {
		return nil
	}
	var a, b, halved []float64
	var differences []stats.Estimate
	for _, s := range parts {
		a, b = append(a, s.a.Value), append(b, s.b.Value)
		differences = append(differences, s.b.Minus(s.a))
		halved = append(halved, (s.b.Value-s.a.Value+1)/2)
	}
	mean, _ := stats.Mean(differences)
	if stopping {
		// The tasks' own intervals belong to other estimates than the unbiased ones. The spread
		// of the unbiased estimates over tasks shows their uncertainty. Differences are between
		// -1 and 1.
		i := stats.MeanInterval(halved, p.options.Confidence)
		mean.Interval = record.Interval{Low: 2*i.Low - 1, High: 2*i.High - 1}
	}
	c := &record.Contrast{Reference: stats.Describe(a).Mean, Run: stats.Describe(b).Mean, Difference: mean.Value}
	if !slices.ContainsFunc(p.pairs, func(t *taskPair) bool { return t.Untestable() }) {
		c.Interval = &mean.Interval
	}
	return c
}

// leastForSigns is the least number of tasks with which exchanging the runs within tasks can
// show a change at 95 %: 2/2⁶ is the first p-value below 5 %.
const leastForSigns = 6

// stoppedTests returns the tests of a suite with tasks that could stop early. The first is
// whether the sharpest test of a task shows a change. If both runs followed the same rules, the
// second is whether more tasks move in one direction than in the other. If nothing changed,
// exchanging a task's two outcomes does not change their distribution, whatever rule stopped its
// trials.
func (p *pairing) stoppedTests(telling bool) []stats.Exact {
	var all []stats.Exact
	var rates, scores []stats.Scores
	same := true
	for _, t := range p.pairs {
		if t.Untestable() {
			continue
		}
		all = append(all, t.Tests...)
		same = same && tally.RuleOf(&t.ref.ref) == tally.RuleOf(&t.run.ref)
		rates = append(rates, stats.Scores{A: []float64{t.result.PassRate.Reference}, B: []float64{t.result.PassRate.Run}})
		if c := t.result.Score; c != nil {
			scores = append(scores, stats.Scores{A: []float64{c.Reference}, B: []float64{c.Run}})
		}
	}
	tests := []stats.Exact{stats.Sharpest(all)}
	if same && len(rates) >= leastForSigns {
		tests = append(tests, stats.PermutationStrata(rates, stats.DefaultSeed))
		if telling {
			tests = append(tests, stats.PermutationStrata(scores, stats.DefaultSeed))
		}
	}
	return tests
}

// outcome sets the outcome from the tests, of pass rates before scores. The suite is the same if
// the intervals of the mean differences are within the margin.
func (p *pairing) outcome(tests []stats.Exact, telling bool) {
	r, o := &p.result, p.options
	r.Outcome, r.P = OutcomeUndecided, 1
	corrected := stats.Holm(tests)
	for i := len(tests) - 1; i >= 0; i-- {
		r.P = min(r.P, corrected[i])
		switch {
		case corrected[i] > 1-o.Confidence:
		case tests[i].Better:
			r.Outcome = OutcomeBetter
		default:
			r.Outcome = OutcomeWorse
		}
	}
	if r.Outcome != OutcomeUndecided || r.PassRate == nil || telling && r.Score == nil {
		return
	}
	if tally.Within(*r.PassRate, o.Margin) && (!telling || tally.Within(*r.Score, o.Margin)) {
		r.Outcome = OutcomeSame
	}
}

// ratioOf returns the ratio of means over the tasks for which both runs have the measure.
func (p *pairing) ratioOf(what func(sideTrial) (float64, bool)) *Ratio {
	var a, b []float64
	var amounts []stats.Amounts
	for _, t := range p.pairs {
		if r := t.measures(what); r != nil {
			a, b = append(a, r.Reference), append(b, r.Run)
			amounts = append(amounts, stats.Amounts{A: t.ref.measures(what), B: t.run.measures(what)})
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
