package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// toolTally holds the tool scores of the trials of a task, separately for passed and other
// trials. It keeps each score, because rounding makes a sum depend on the order in which trials
// happen to end.
type toolTally struct{ passed, other toolValues }

// toolValues holds tool scores by measure.
type toolValues struct{ selection, params, overall []float64 }

func (v *toolValues) add(s *record.ToolScores) {
	v.selection = append(v.selection, s.Selection)
	v.overall = append(v.overall, s.Overall)
	if s.Params != nil {
		v.params = append(v.params, *s.Params)
	}
}

// add adds the scores of a trial that measures the agent. This includes trials that wait for a
// person, because only trials that passed everything else wait.
func (t *toolTally) add(res *record.Trial) {
	switch {
	case res.Tools == nil:
	case res.Verdict == record.Passed:
		t.passed.add(&res.Tools.ToolScores)
	case res.Verdict.Counted() || res.Verdict == record.NeedsReview:
		t.other.add(&res.Tools.ToolScores)
	}
}

// means returns the mean tool scores of the task; nil without scores. For a task that could stop
// early, it weighs passed and other trials like the unbiased score.
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

// ToolsOver returns the means over tasks of their tool scores, like the score of a run is a mean
// over tasks; nil when none has any. For example, three tasks have the overall scores 1, 0.9 and
// 0.5, and the last lists no arguments, so its params are nil. The overall score is 2.4 / 3 =
// 0.8, and params are the mean of two.
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
