package replay

import (
	"maps"

	"waza/runner/record"
)

// Judged contains the recorded answers of judges after the trials of a run of kind judge.
type Judged struct {
	Comparing   record.Comparing
	Comparisons map[record.ComparisonKey]*record.CaseComparison // the last answer for each
	Findings    *record.Findings
}

func (j *Judged) apply(e *record.Event) {
	switch {
	case e.Type == record.CompareStart && e.Comparing != nil:
		j.Comparing = *e.Comparing
		for _, key := range e.Comparing.Dropped {
			delete(j.Comparisons, key)
		}
	case e.Comparison != nil:
		if j.Comparisons == nil {
			j.Comparisons = map[record.ComparisonKey]*record.CaseComparison{}
		}
		j.Comparisons[e.Comparison.Key()] = e.Comparison
	case e.Findings != nil:
		j.Findings = e.Findings
	}
}

// keepOnly drops the comparisons of trials that are not kept.
func (j *Judged) keepOnly(rec *record.Run, kept map[string][]record.TrialRange) {
	if len(j.Comparisons) == 0 {
		return
	}
	known := make(map[string]bool, len(rec.Tasks))
	for i := range rec.Tasks {
		known[rec.Tasks[i].ID] = true
	}
	maps.DeleteFunc(j.Comparisons, func(key record.ComparisonKey, _ *record.CaseComparison) bool {
		keeps := func(task string) bool { return known[task] && contains(kept[task], key.TrialNum) }
		return !keeps(key.TaskA) || !keeps(key.TaskB)
	})
}

func (j *Judged) clone() Judged {
	c := *j
	c.Comparisons = maps.Clone(j.Comparisons)
	return c
}
