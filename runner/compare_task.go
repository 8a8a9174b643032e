package runner

import (
	"math"

	"waza/runner/stats"
)

// What decides.
const (
	byPassRate = "passRate"
	byScore    = "score"
)

// power is the chance of deciding that [Needed] is about.
const power = 0.8

// leastForEqual is how many scores a run must have for their spread to tell that
// the means are equal: of a few that happen to agree, the bootstrap knows no better.
const leastForEqual = 5

// test gives all tasks their tests, and corrects these for their number.
func (p *pairing) test() {
	var all []stats.Exact
	for _, t := range p.pairs {
		t.add(TestFisher, stats.Fisher(t.a, t.b))
		t.add(TestMcNemar, stats.McNemar(t.out.Pairs.Worse, t.out.Pairs.Better))
		if t.telling {
			t.add(TestPermutation, stats.Permutation(t.scoresA, t.scoresB, stats.DefaultSeed))
		}
		all = append(all, t.tests...)
	}
	corrected := stats.Holm(all)
	for _, t := range p.pairs {
		t.corrected, corrected = corrected[:len(t.tests)], corrected[len(t.tests):]
		t.out.P = 1
		for i := range t.out.Tests {
			t.out.Tests[i].Corrected = t.corrected[i]
			t.out.P = min(t.out.P, t.corrected[i])
		}
	}
}

func (t *taskPair) add(name string, e stats.Exact) {
	t.tests = append(t.tests, e)
	t.out.Tests = append(t.out.Tests, TaskTest{Name: name, P: e.P})
}

// classify says what became of a task.
func (p *pairing) classify(t *taskPair) {
	o, out := p.options, &t.out
	pass := stats.DifferenceInterval(t.a, t.b, o.Confidence)
	out.PassRate = Contrast{t.a.Rate(), t.b.Rate(), t.b.Rate() - t.a.Rate(), &pass}
	out.Score = t.score(o.Confidence)
	out.DurationMS, out.Tokens, out.CostUSD = t.took(tookTime), t.took(tookTokens), t.took(tookMoney)

	passSame, scoreSame := math.Abs(out.PassRate.Difference) < sameNumber, true
	passEqual, scoreEqual := within(out.PassRate, o.Margin), true
	if t.telling && out.Score != nil {
		scoreSame = math.Abs(out.Score.Difference) < sameNumber
		scoreEqual = len(t.scoresA) >= leastForEqual && len(t.scoresB) >= leastForEqual && within(*out.Score, o.Margin)
	}
	out.Equal = passEqual && scoreEqual
	if t.decided(1 - o.Confidence) {
		out.Equal = false
		return
	}
	out.Class = Undecided
	if (passSame || passEqual) && (scoreSame || scoreEqual) {
		out.Class = Unchanged
		return
	}
	out.Needed = p.trialsNeeded(t, passSame)
}

// decided takes what the tests have shown, of pass rates before scores.
func (t *taskPair) decided(level float64) bool {
	best := -1
	for i, p := range t.corrected {
		switch {
		case p > level:
		case best < 0, t.out.Tests[i].Name != TestPermutation && p < t.corrected[best]:
			best = i
		}
	}
	if best < 0 {
		return false
	}
	t.out.By, t.out.Class = byPassRate, Regressed
	if t.out.Tests[best].Name == TestPermutation {
		t.out.By = byScore
	}
	if t.tests[best].Better {
		t.out.Class = Improved
	}
	return true
}

// within reports whether a difference beyond the margin is ruled out.
func within(c Contrast, margin float64) bool {
	return c.Interval != nil && c.Interval.Low >= -margin-sameNumber && c.Interval.High <= margin+sameNumber
}

func (t *taskPair) score(confidence float64) *Contrast {
	if len(t.scoresA) == 0 || len(t.scoresB) == 0 {
		return nil
	}
	c := contrast(stats.Describe(t.scoresA).Mean, stats.Describe(t.scoresB).Mean)
	if len(t.scoresA) > 1 && len(t.scoresB) > 1 {
		i := stats.BootstrapDifference(t.scoresA, t.scoresB, stats.DefaultSeed, confidence)
		c.Interval = &i
	}
	return c
}

func contrast(ref, run float64) *Contrast {
	return &Contrast{Reference: ref, Run: run, Difference: run - ref}
}

func (t *taskPair) took(what func(sideTrial) (float64, bool)) *Ratio {
	a, okA := t.ref.took(what)
	b, okB := t.run.took(what)
	if !okA || !okB {
		return nil
	}
	return ratio(a, b)
}

func ratio(ref, run float64) *Ratio {
	r := &Ratio{Reference: ref, Run: run}
	if x := run / ref; ref > 0 && !math.IsInf(x, 0) {
		r.Ratio = &x
	}
	return r
}

// trialsNeeded says with how many trials the difference would be shown, at the
// level that the strictest of all tasks is held to.
func (p *pairing) trialsNeeded(t *taskPair, passSame bool) *Needed {
	have := min(t.a.N, t.b.N)
	if have < 2 {
		return nil
	}
	level := (1 - p.options.Confidence) / float64(len(p.pairs))
	var n int
	var ok bool
	if passSame {
		d := t.out.Score.Difference
		n, ok = stats.ScoreTrialsNeeded(d, stats.Describe(t.scoresA).StdDev, stats.Describe(t.scoresB).StdDev, level, power)
	} else {
		key := [3]float64{t.a.Rate(), t.b.Rate(), level}
		if _, known := p.needed[key]; !known {
			p.needed[key], _ = stats.TrialsNeeded(key[0], key[1], level, power)
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
