package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// toolTally holds the tool scores of the trials of a task, those of trials that passed and
// of the others apart. They are kept one by one: a sum would depend, by a rounding, on the
// order in which trials happen to end.
type toolTally struct{ passed, other toolValues }

// toolValues are tool scores by what they measure.
type toolValues struct{ selection, params, overall []float64 }

func (v *toolValues) add(s *record.ToolScores) {
	v.selection = append(v.selection, s.Selection)
	v.overall = append(v.overall, s.Overall)
	if s.Params != nil {
		v.params = append(v.params, *s.Params)
	}
}

// add takes the scores of a trial that says something about the agent. One that waits for
// a person is among them: only those that passed all else wait.
func (t *toolTally) add(res *record.Trial) {
	switch {
	case res.Tools == nil:
	case res.Verdict == record.Passed:
		t.passed.add(&res.Tools.ToolScores)
	case res.Verdict.Counted() || res.Verdict == record.NeedsReview:
		t.other.add(&res.Tools.ToolScores)
	}
}

// means are those of the task; nil without scores. Of a task that could stop early, trials
// that passed and others are weighed as its score weighs them, which has no bias.
func (t *toolTally) means(unbiased *record.Unbiased) *record.ToolScores {
	mean := func(passed, other []float64) *float64 {
		p, o := stats.Describe(passed), stats.Describe(other)
		all := stats.Describe(append(append([]float64(nil), passed...), other...)).Mean
		switch {
		case p.N+o.N == 0:
			return nil
		case unbiased != nil && p.N > 0 && o.N > 0:
			all = float64(unbiased.PassRate*p.Mean) + float64((1-unbiased.PassRate)*o.Mean)
		}
		return &all
	}
	selection, overall := mean(t.passed.selection, t.other.selection), mean(t.passed.overall, t.other.overall)
	if selection == nil {
		return nil
	}
	return &record.ToolScores{Selection: *selection, Params: mean(t.passed.params, t.other.params), Overall: *overall}
}

// ToolsOver are the means over tasks of their tool scores, as the score of a run is a mean
// over tasks; nil when none has any. For example, three tasks have the overall scores
// 1, 0.9 and 0.5, and the last lists no arguments, so that its params are nil: the overall
// score is 2.4 / 3 = 0.8, and params are the mean of two.
func ToolsOver(tasks []*record.Task) *record.ToolScores {
	var all toolValues
	for _, t := range tasks {
		if t.Tools != nil {
			all.add(t.Tools)
		}
	}
	if len(all.selection) == 0 {
		return nil
	}
	s := &record.ToolScores{Selection: stats.Describe(all.selection).Mean, Overall: stats.Describe(all.overall).Mean}
	if len(all.params) > 0 {
		mean := stats.Describe(all.params).Mean
		s.Params = &mean
	}
	return s
}
