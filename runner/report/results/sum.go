package results

import (
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/stats"
)

// add counts a task.
func (s *resultsSum) add(t *report.Task, st *resultsStats) {
	verdict := record.Skipped
	if t.Result != nil {
		verdict = t.Result.Verdict
	}
	s.summary.TotalTests++
	switch resultsStatus(verdict) {
	case "passed":
		s.summary.Succeeded++
		s.counted++
	case "failed":
		s.summary.Failed++
		s.counted++
	case "error":
		s.summary.Errors++
	default:
		s.summary.Skipped++
	}
	if st != nil {
		s.plain = append(s.plain, st.AvgScore)
		s.weighted = append(s.weighted, st.AvgWeightedScore)
	}
	if group := groupOf(t); group != "" {
		s.group(group, verdict == record.Passed, st)
	}
}

func (s *resultsSum) group(name string, passed bool, st *resultsStats) {
	at := -1
	for i := range s.groups {
		if s.groups[i].Name == name {
			at = i
		}
	}
	if at < 0 {
		at, s.groups = len(s.groups), append(s.groups, resultsGroup{Name: name})
	}
	g := &s.groups[at]
	g.Total++
	if passed {
		g.Passed++
	}
	if st == nil {
		return
	}
	if s.scored == nil {
		s.scored = map[string]int{}
	}
	s.scored[name]++
	g.AvgScore += (st.AvgScore - g.AvgScore) / float64(s.scored[name])
}

// summary sums up the tasks that were written.
func (r *results) summary() resultsSummary {
	s := &r.sum
	sum := s.summary
	if s.counted > 0 {
		sum.SuccessRate = float64(sum.Succeeded) / float64(s.counted)
	}
	plain, weighted := stats.Describe(s.plain), stats.Describe(s.weighted)
	sum.AggregateScore, sum.MinScore, sum.MaxScore, sum.StdDev = plain.Mean, plain.Min, plain.Max, plain.StdDev
	sum.WeightedScore, sum.Groups = weighted.Mean, s.groups
	if r.Record.Config.Trials > 1 && weighted.N > 1 {
		i := stats.MeanInterval(s.weighted, stats.DefaultConfidence)
		if r.role == record.RoleTask && r.Summary != nil && r.Summary.Score != nil {
			i = r.Summary.Score.MeanInterval
		}
		sum.Statistics = &resultsStatistics{
			BootstrapCI:   resultsInterval{Lower: i.Low, Upper: i.High, Mean: weighted.Mean, ConfidenceLevel: stats.DefaultConfidence},
			IsSignificant: i.Low > 0,
		}
	}
	var total record.Usage
	counted := false
	for _, t := range r.Tasks {
		if t.Result != nil && t.Result.Usage != nil && t.Role == r.role {
			total, counted = total.Add(*t.Result.Usage), true
		}
	}
	if counted {
		sum.Usage = resultsUsageOf(r.turns, total)
	}
	if r.Summary != nil {
		sum.DurationMS = r.Summary.DurationMS
	}
	return sum
}

func (r *results) metrics() map[string]resultsMetric {
	all := map[string]resultsMetric{}
	if r.Summary == nil {
		return all
	}
	for _, m := range r.Summary.Metrics {
		if m.Value != nil { // what was not measured is neither 0 nor 1
			all[m.Name] = resultsMetric{Identifier: m.Name, Value: *m.Value, Threshold: m.Threshold, Weight: m.Weight, Passed: m.Passed == nil || *m.Passed}
		}
	}
	return all
}

// metadata is what the format has no other place for.
func (r *results) metadata() map[string]any {
	m := map[string]any{"run_status": r.Status}
	if r.Error != "" {
		m["run_error"] = r.Error
	}
	if r.Record.Config.Agent != "" {
		m["agent"] = r.Record.Config.Agent
	}
	if r.Summary != nil && len(r.Summary.Missed) > 0 {
		m["missed_metrics"] = r.Summary.Missed
	}
	if r.Summary != nil && r.Summary.PassRateBounds != nil { // the members know a rate only
		m["pass_rate_bounds"] = r.Summary.PassRateBounds
	}
	if r.Summary != nil && r.Summary.Usage != nil { // of baselines and trigger tests as well
		m["usage"], m["usage_by_role"] = r.Summary.Usage, r.Summary.UsageByRole
	}
	return m
}

// triggers writes an entry for each trial of the trigger tests, and returns what
// they come to; nil when there are none.
func (r *results) triggers() (*resultsTriggers, error) {
	if !r.has(record.RoleTrigger) {
		return nil, nil
	}
	sum := &resultsTriggers{}
	r.out.WriteString(`,"trigger_results":[`)
	comma := false
	err := r.h.Trials(func(task int, t *record.Trial) error {
		ref := r.Tasks[task].Trigger
		if ref == nil {
			return nil
		}
		if comma {
			r.out.WriteByte(',')
		}
		comma = true
		return r.value(sum.add(ref, t))
	})
	if err != nil {
		return nil, err
	}
	r.out.WriteByte(']')
	if r.Summary != nil && r.Summary.Triggers != nil {
		t := r.Summary.Triggers
		sum.Precision, sum.Recall, sum.F1, sum.Accuracy = orZero(t.Precision), orZero(t.Recall), orZero(t.F1), orZero(t.Accuracy)
	}
	return sum, nil
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// add counts a trial of a trigger test. One that passed did as it should have done.
func (s *resultsTriggers) add(ref *record.TriggerRef, t *record.Trial) resultsTrigger {
	res := resultsTrigger{Prompt: ref.Prompt, Confidence: ref.Confidence, ShouldTrigger: ref.ShouldTrigger, FinalOutput: t.Output, ErrorMsg: t.Error}
	switch {
	case t.Verdict != record.Passed && t.Verdict != record.Failed:
		s.Errors++
	case t.Verdict == record.Passed && ref.ShouldTrigger:
		res.DidTrigger = true
		s.TruePositives++
	case t.Verdict == record.Passed:
		s.TrueNegatives++
	case ref.ShouldTrigger:
		s.FalseNegatives++
	default:
		res.DidTrigger = true
		s.FalsePositives++
	}
	return res
}
