package runner

import (
	"waza/runner/stats"
)

// suite says what became of the suite as a whole. Two questions are kept apart:
// whether any of these tasks changed, all moves being added up, is tested within
// each task, so that few tasks are enough; how large the difference is over tasks
// like these, the bootstrap over tasks tells.
func (p *pairing) suite() {
	r := &p.result
	var a, b, scoreA, scoreB []float64
	var strata []stats.Stratum
	var scores []stats.Scores
	var pooled stats.Stratum
	telling := false
	for _, t := range p.pairs {
		a, b = append(a, t.a.Rate()), append(b, t.b.Rate())
		strata = append(strata, stats.Stratum{A: t.a, B: t.b})
		pooled.A, pooled.B = sumShares(pooled.A, t.a), sumShares(pooled.B, t.b)
		telling = telling || t.telling
		if c := t.out.Score; c != nil {
			scoreA, scoreB = append(scoreA, c.Reference), append(scoreB, c.Run)
			scores = append(scores, stats.Scores{A: t.scoresA, B: t.scoresB})
		}
	}
	r.PassRate, r.Score = p.over(a, b), p.over(scoreA, scoreB)
	tests := []stats.Exact{stats.MantelHaenszel(strata)}
	if telling {
		tests = append(tests, stats.PermutationStrata(scores, stats.DefaultSeed))
	}
	p.outcome(tests, telling, pooled)
	r.Verdicts = p.verdicts()
	r.DurationMS, r.Tokens, r.CostUSD = p.ratioOf(tookTime), p.ratioOf(tookTokens), p.ratioOf(tookMoney)
}

func sumShares(a, b stats.Share) stats.Share {
	return stats.Share{Passed: a.Passed + b.Passed, N: a.N + b.N}
}

// outcome takes what was shown, of pass rates before scores. That nothing
// changed beyond the margin must hold over tasks, and over trials too: a few
// that agree are no proof.
func (p *pairing) outcome(tests []stats.Exact, telling bool, pooled stats.Stratum) {
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
	i := stats.DifferenceInterval(pooled.A, pooled.B, o.Confidence)
	if within(Contrast{Interval: &i}, o.Margin) && within(*r.PassRate, o.Margin) && (!telling || within(*r.Score, o.Margin)) {
		r.Outcome = OutcomeSame
	}
}

// over is the mean over tasks, each of which weighs the same.
func (p *pairing) over(a, b []float64) *Contrast {
	if len(a) == 0 {
		return nil
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = b[i] - a[i]
	}
	c := &Contrast{Reference: stats.Describe(a).Mean, Run: stats.Describe(b).Mean, Difference: stats.Describe(differences).Mean}
	if len(a) > 1 {
		i := stats.BootstrapMean(differences, stats.DefaultSeed, p.options.Confidence)
		c.Interval = &i
	}
	return c
}

// ratioOf is the mean over the tasks that are known in both runs.
func (p *pairing) ratioOf(what func(sideTrial) (float64, bool)) *Ratio {
	var a, b []float64
	for _, t := range p.pairs {
		if r := t.took(what); r != nil {
			a, b = append(a, r.Reference), append(b, r.Run)
		}
	}
	if len(a) == 0 {
		return nil
	}
	r := ratio(stats.Describe(a).Mean, stats.Describe(b).Mean)
	if i, ok := stats.BootstrapRatio(a, b, stats.DefaultSeed, p.options.Confidence); ok && r.Ratio != nil {
		r.Interval = &i
	}
	return r
}

// verdicts compares the verdicts of tasks.
func (p *pairing) verdicts() Verdicts {
	var v Verdicts
	for _, t := range p.pairs {
		if !t.ref.verdict.counted() || !t.run.verdict.counted() {
			continue
		}
		switch before, now := t.ref.verdict == Passed, t.run.verdict == Passed; {
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
